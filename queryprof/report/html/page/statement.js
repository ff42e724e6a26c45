// The page of one statement.

function statementPage(number) {
  const s = D.statements;
  if (!(number in s.text)) {
    return h(
      "div",
      {},
      h("p", {}, h("a", { href: "#/" }, "← all statements")),
      h("h1", {}, "No such statement"),
    );
  }
  const share = D.facts.database_ns ? s.self_ns[number] / D.facts.database_ns : 0;
  const figures = [
    ["mean", duration(s.mean_ns[number])],
    ["p50", duration(s.p50_ns[number])],
    ["p95", duration(s.p95_ns[number])],
    ["p99", duration(s.p99_ns[number])],
    ["longest", duration(s.max_ns[number])],
    ["rows", average(s.rows_each[number])],
    ["VM steps", average(s.vm_steps[number])],
    ["full-scan steps", average(s.full_scan_steps[number])],
    ["page fetches", average(s.page_fetches[number])],
    ["errors", count(s.errors[number])],
  ];
  if (s.before_ns) {
    figures.push(["before", duration(s.before_ns[number])], [
      "change",
      change(s.before_ns[number], s.self_ns[number]),
    ]);
  }
  const more = D.details[number] ?? { plan: [], buckets: [], counts: [], slowest: [], notes: [] };
  const rest = s.site_count[number] - s.sites[number].length;
  return h(
    "div",
    {},
    h("p", {}, h("a", { href: "#/" }, "← all statements")),
    h(
      "h1",
      { tabindex: -1 },
      `${percent(share)} of the database time: ${duration(s.self_ns[number])} in ${
        counted(s.executions[number], "execution")
      }`,
    ),
    h("pre", { class: "card sql", tabindex: 0 }, sql(statementText(number))),
    more.notes.map((note) => h("p", { class: "note" }, text(note))),
    h(
      "dl",
      { class: "figures" },
      figures.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    ),
    h(
      "div",
      { class: "pair" },
      h(
        "section",
        {},
        h("h2", {}, "Durations"),
        histogram(more.buckets, more.counts, [
          ["p50", s.p50_ns[number]],
          ["p95", s.p95_ns[number]],
          ["p99", s.p99_ns[number]],
        ]),
      ),
      h("section", {}, h("h2", {}, "Plan"), plan(more.plan)),
    ),
    h(
      "section",
      {},
      h("h2", {}, `Called from ${counted(s.site_count[number], "place")}`),
      s.sites[number].map((site) => place(number, site)),
      rest > 0 &&
        h(
          "p",
          { class: "card dim" },
          `${counted(rest, "place")} more: ${
            duration(s.self_ns[number] - s.sites[number].reduce((sum, [, ns]) => sum + ns, 0))
          }`,
        ),
    ),
    more.slowest.length > 0 &&
      h("section", {}, h("h2", {}, "Slowest executions"), more.slowest.map(slowest)),
  );
}

const plan = (steps) =>
  steps.length
    ? h(
      "pre",
      { class: "card plan", tabindex: 0 },
      steps.map(([step, sign]) => [
        h("span", { class: sign >= 0 && "worse" }, text(step), sign >= 0 && `  ! ${text(sign)}`),
        "\n",
      ]),
    )
    : h("p", { class: "card dim" }, "Not known.");

function place(number, [site, ns, executions, caller = -1]) {
  const lines = D.source[site];
  return h(
    "div",
    { class: "card" },
    h(
      "p",
      {},
      h("b", {}, duration(ns)),
      ` ${percent(D.statements.self_ns[number] ? ns / D.statements.self_ns[number] : 0)}, `,
      `${counted(executions, "execution")}: ${siteText(site)}`,
      caller >= 0 && h("span", { class: "dim" }, ` ← ${siteText(caller)}`),
    ),
    lines && h(
      "pre",
      { class: "source", tabindex: 0 },
      lines.map(([line, code]) =>
        h(
          "span",
          { class: line === D.sites.line[site] && "here" },
          h("i", {}, line),
          text(code),
          "\n",
        )
      ),
    ),
  );
}

const slowest = ([ns, at, rows, span, stack, full, parameters]) =>
  h(
    "details",
    { class: "card" },
    h(
      "summary",
      {},
      h("b", {}, duration(ns)),
      ` at +${duration(at)}, ${counted(rows, "row")}`,
      span >= 0 && text(span) && `, in ${text(span)}`,
    ),
    full >= 0 &&
      h(
        "pre",
        { class: "sql", tabindex: 0 },
        text(full),
        parameters >= 0 && `\n${text(parameters)}`,
      ),
    stack.length
      ? h("ol", { class: "stack" }, stack.map((site) => h("li", {}, siteText(site))))
      : h("p", { class: "dim" }, "Its stack was not sampled."),
  );
