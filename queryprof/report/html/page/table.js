// All statements: searched, sorted, and only the rows that are seen in the document.

const ROW = 46;
const FEW = 60; // all of these are in the document
const MOST_PRINTED = 500;
const COLUMNS = [
  ["share", "self_ns", (ns) => percent(D.facts.database_ns ? ns / D.facts.database_ns : 0), ""],
  ["total", "self_ns", duration, ""],
  ["count", "executions", count, ""],
  ["mean", "mean_ns", duration, "wide"],
  ["p99", "p99_ns", duration, "wide"],
  ["longest", "max_ns", duration, "wide"],
  ["rows", "rows_each", average, "wide"],
  ["VM steps", "vm_steps", average, "wide"],
];

function statements() {
  const all = D.statements.text.map((_, number) => number);
  const haystack = all.map((number) =>
    [statementText(number), ...D.statements.sites[number].map(([site]) => siteText(site))].join(
      "\n",
    ).toLowerCase()
  );
  let shown = all, order = ["self_ns", -1], on = -1;

  const search = h("input", {
    type: "search",
    id: "search",
    "aria-label": "Search statements, functions and files",
    placeholder: "SQL, function or file  ( / )",
    oninput: () => update(),
  });
  const status = h("p", { class: "dim", role: "status", "aria-live": "polite" });
  const columns = D.statements.before_ns
    ? [...COLUMNS.slice(0, 2), ["before", "before_ns", duration, ""], ...COLUMNS.slice(2)]
    : COLUMNS;
  const heads = columns.map(([name, key, , size]) =>
    h("th", {
      scope: "col",
      class: `right ${size}`,
      "aria-sort": name === "total" ? "descending" : "none",
    }, h("button", { type: "button", onclick: () => sortBy(name, key) }, name))
  );
  const above = h("td", { colspan: columns.length + 1 }),
    below = h("td", { colspan: columns.length + 1 });
  const body = h("tbody");
  const table = h(
    "table",
    { class: "statements", "aria-rowcount": all.length + 1 },
    h("thead", {}, h("tr", {}, heads, h("th", { scope: "col" }, "statement"))),
    body,
  );

  function sortBy(name, key) {
    order = [
      key,
      order[0] === key &&
        heads.some((head, at) =>
          columns[at][0] === name && head.getAttribute("aria-sort") === "descending"
        )
        ? 1
        : -1,
    ];
    heads.forEach((head, at) =>
      head.setAttribute(
        "aria-sort",
        columns[at][0] === name ? (order[1] < 0 ? "descending" : "ascending") : "none",
      )
    );
    update();
  }

  function update() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const [key, direction] = order, column = D.statements[key];
    shown = all.filter((number) => words.every((word) => haystack[number].includes(word)));
    shown.sort((a, b) => ((column[a] ?? -1) - (column[b] ?? -1)) * direction || a - b);
    const some = shown.length
      ? `${grouped(shown.length)} of `
      : "No statement contains all of these words: 0 of ";
    status.textContent = (words.length ? some : "") + counted(all.length, "statement");
    on = -1;
    draw();
  }

  const row = (number, place) =>
    h(
      "tr",
      { class: place === on && "on", "aria-rowindex": place + 2 },
      columns.map(([, key, form, size]) =>
        h("td", { class: `right ${size}` }, form(D.statements[key][number]))
      ),
      h(
        "td",
        { class: "what" },
        h("div", {}, statementLink(number)),
        h(
          "div",
          { class: "dim" },
          siteText(D.statements.sites[number][0]?.[0] ?? -1),
          D.statements.site_count[number] > 1 &&
            ` and ${grouped(D.statements.site_count[number] - 1)} more`,
        ),
      ),
    );

  function draw(everything = false) {
    const top = -table.getBoundingClientRect().top;
    const few = everything || shown.length <= FEW;
    const first = few ? 0 : Math.max(0, Math.min(Math.floor(top / ROW) - 10, shown.length - 1));
    const last = few
      ? Math.min(shown.length, MOST_PRINTED)
      : Math.min(shown.length, Math.ceil((top + innerHeight) / ROW) + 10);
    above.style.height = `${first * ROW}px`;
    below.style.height = `${Math.max(0, shown.length - last) * ROW}px`;
    const rows = shown.slice(first, Math.max(last, first)).map((number, at) =>
      row(number, first + at)
    );
    body.replaceChildren(
      ...(first ? [h("tr", { "aria-hidden": "true" }, above)] : []),
      ...rows,
      ...(last < shown.length ? [h("tr", { "aria-hidden": "true" }, below)] : []),
    );
  }

  // Moves the marked row by so many.
  function move(by) {
    if (!shown.length) return;
    on = Math.max(0, Math.min(shown.length - 1, on + by));
    const y = table.getBoundingClientRect().top + scrollY + ROW * (on + 1);
    if (y < scrollY + 80 || y > scrollY + innerHeight - 2 * ROW) scrollTo(0, y - innerHeight / 2);
    draw();
  }

  addEventListener("scroll", () => table.isConnected && !table.closest("[hidden]") && draw(), {
    passive: true,
  });
  addEventListener("resize", () => table.isConnected && draw());
  addEventListener("beforeprint", () => draw(true));
  addEventListener("afterprint", () => draw());
  return {
    element: section(
      "statements",
      "Statements",
      h("div", { class: "tools" }, search, status),
      h("div", { class: "card flat" }, table),
    ),
    search,
    update,
    move,
    draw,
    open: () => on >= 0 && (location.hash = `#/s/${shown[on]}`),
  };
}
