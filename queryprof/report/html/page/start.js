// Puts the page together, and follows the address and the keyboard.

const KEYS = [
  ["/", "search"],
  ["j  k", "next, previous statement"],
  ["Enter", "open the statement"],
  ["Escape", "back"],
  ["d", "dark or light"],
  ["?", "show these keys"],
];

function processes() {
  const columns = [["process", false], ["ran", true], ["Python", false], ["SQLite", false], [
    "clock",
    false,
  ]];
  return section(
    "processes",
    "Processes",
    plainTable(
      "Processes",
      columns,
      D.processes.map((p) => [
        text(p.command),
        duration(p.wall_ns),
        text(p.python),
        text(p.sqlite),
        text(p.clock),
      ]),
    ),
  );
}

function errors() {
  if (!D.errors.length) return null;
  const columns = [["calls", true], ["exception", false], ["statement", false], ["place", false]];
  return section(
    "errors",
    "Errors",
    plainTable(
      "Errors",
      columns,
      D.errors.map((e) => [
        count(e.count),
        text(e.exception),
        mention(e.statement, e.text),
        siteText(e.site),
      ]),
    ),
  );
}

function switchTheme() {
  const dark = document.documentElement.dataset.theme ??
    (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = dark === "dark" ? "light" : "dark";
}

async function start() {
  const app = document.getElementById("app");
  D = await load();
  if (!D) {
    app.replaceChildren(
      h(
        "p",
        {},
        "This browser cannot unpack the report: it has no DecompressionStream (Chrome 80, Firefox 113 and Safari 16.4 have).",
      ),
    );
    return;
  }
  const table = D.facts.places ? statements() : null;
  const parts = [
    findings(),
    advice(),
    pareto(),
    requests(),
    loops(),
    locks(),
    icicle(),
    errors(),
    table?.element,
    processes(),
  ].filter(Boolean);
  const overview = h(
    "div",
    { id: "overview" },
    h("h1", {}, title()),
    subtitle(),
    facts(),
    cautions(),
    parts,
  );
  const page = h("div", { id: "page", hidden: true });
  const keys = h(
    "dialog",
    { "aria-label": "Keys" },
    h("dl", {}, KEYS.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
    h("form", { method: "dialog" }, h("button", {}, "Close")),
  );
  const links = parts.map((part) =>
    h("a", { href: `#${part.id}` }, part.querySelector("h2").textContent)
  );
  app.replaceChildren(
    h(
      "header",
      {},
      h("a", { href: "#/", class: "brand" }, "queryprof"),
      h("nav", { "aria-label": "Parts of the report" }, links),
      h("button", { type: "button", "aria-label": "Keys", onclick: () => keys.showModal() }, "?"),
      h("button", { type: "button", onclick: switchTheme }, "Dark / light"),
    ),
    h("main", {}, overview, page),
    h("footer", {}, D.footer.map((line) => h("p", {}, text(line)))),
    keys,
  );

  let kept = 0;
  function route() {
    const found = /^#\/s\/(\d+)$/.exec(location.hash);
    if (found && !overview.hidden) kept = scrollY;
    const back = !found && overview.hidden;
    overview.hidden = Boolean(found);
    page.hidden = !found;
    page.replaceChildren(...(found ? [statementPage(Number(found[1]))] : []));
    if (found) {
      scrollTo(0, 0);
      page.querySelector("h1").focus();
      return;
    }
    table?.draw();
    if (location.hash.length > 2) document.getElementById(location.hash.slice(1))?.scrollIntoView();
    else if (back) scrollTo(0, kept);
  }

  addEventListener("hashchange", route);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
    const typing = event.target === table?.search;
    if (event.key === "Escape") {
      if (!page.hidden) location.hash = "#/";
      else if (typing) table.search.blur();
      return;
    }
    if (typing && event.key !== "Enter") return;
    if (event.key === "Enter" && (!typing && event.target !== document.body)) return;
    const act = {
      "/": () => {
        if (!page.hidden) location.hash = "#/";
        table?.search.focus();
      },
      j: () => page.hidden && table?.move(1),
      k: () => page.hidden && table?.move(-1),
      Enter: () => {
        if (typing) table.move(1);
        table?.open();
      },
      d: switchTheme,
      "?": () => keys.showModal(),
    }[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  });
  table?.update();
  route();
  document.documentElement.dataset.ready = performance.now().toFixed(0);
}

start();
