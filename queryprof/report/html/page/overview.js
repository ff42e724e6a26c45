// The first page, from its sentence down to the locks.

const FIRST_FINDINGS = 3;
const FIRST_ROWS = 10;

// What is seen when it is opened; null: nothing is left.
const more = (items, noun, form) =>
  items.length
    ? h(
      "details",
      { class: "more" },
      h("summary", {}, `${counted(items.length, noun)} more`),
      form(items),
    )
    : null;

// A table of which the first rows are seen at once.
const table = (label, columns, rows) => {
  const form = (some) => plainTable(label, columns, some);
  return [form(rows.slice(0, FIRST_ROWS)), more(rows.slice(FIRST_ROWS), "row", form)];
};

function title() {
  if (D.headline.length) return text(D.headline[0]);
  const { vital, places, vital_share: share } = D.facts;
  if (!places) return "No database time";
  return `${grouped(vital)} of ${counted(places, "place")} make up ${
    percent(share)
  } of the database time`;
}

// The program, when it ran, and its databases.
function subtitle() {
  const { command, started, databases, names } = D.facts;
  const pieces = [names, started, databases].map(text).filter(Boolean);
  return h(
    "p",
    { class: "dim" },
    h("span", { class: "sql" }, text(command)),
    pieces.map((words) => ` · ${words}`),
  );
}

function facts() {
  const f = D.facts;
  const fact = (value, words) => h("li", {}, h("b", {}, value), ` ${words}`);
  return h(
    "ul",
    { class: "facts" },
    fact(
      duration(f.database_ns),
      `in the database, ${percent(f.database_share)} of ${duration(f.process_ns)}`,
    ),
    fact(count(f.executions), `executions of ${counted(f.statements, "statement")}`),
    fact(f.rows === null ? "?" : count(f.rows), "rows"),
    fact(count(f.errors), "errors"),
    f.processes > 1 && fact(count(f.processes), "processes"),
    fact(duration(f.profiler_ns), "recording cost (estimate)"),
  );
}

const cautions = () =>
  D.cautions.length
    ? h("ul", { class: "cautions" }, D.cautions.map((caution) => h("li", {}, text(caution))))
    : D.facts.places
    ? h("p", { class: "dim" }, D.complete)
    : null;

// The vital few as rows, with a bar behind each.
function pareto() {
  const { statement, site, self_ns: spent, share, cumulative } = D.pareto;
  if (!statement.length) return null;
  const rows = statement.map((number, at) =>
    h(
      "li",
      { class: at < D.facts.vital ? "" : "rest" },
      h("span", { class: "bar", css: { width: `${share[at] * 100}%` } }),
      h("span", { class: "rank" }, at + 1),
      h("span", { class: "right" }, percent(share[at])),
      h("span", { class: "right dim wide" }, percent(cumulative[at])),
      h(
        "span",
        { class: "what" },
        mention(number, -1),
        h("br"),
        h("span", { class: "dim" }, siteText(site[at]), " · ", duration(spent[at])),
        against(D.pareto, at),
      ),
    )
  );
  const { vital, places, vital_share: most } = D.facts;
  const left = places - statement.length;
  return section(
    "vital",
    "The vital few",
    timeline(),
    h(
      "p",
      { class: "dim" },
      `${grouped(vital)} of ${counted(places, "place")} make up ${
        percent(most)
      } of the database time.`,
    ),
    h("ol", { class: "card pareto" }, rows),
    h(
      "p",
      { class: "dim" },
      `Bars and first figure: share of the database time; second figure: what they make up together.${
        left > 0
          ? ` ${counted(left, "more place")} ${
            left === 1 ? "is" : "are"
          } among the statements below.`
          : ""
      }`,
    ),
  );
}

// What it was before, where the page compares with another recording.
function against(columns, at) {
  if (!columns.before_ns) return null;
  const before = columns.before_ns[at], after = columns.self_ns[at];
  return h(
    "span",
    { class: changeClass(before, after) },
    before === null ? " · new" : ` · was ${duration(before)}: ${change(before, after)}`,
  );
}

const changeClass = (before, after) =>
  before === null || after > before * 1.05 ? "worse" : after < before * 0.95 ? "better" : "dim";

function findings() {
  if (!D.findings.length) {
    const lines = D.nothing.map((line) => h("p", {}, text(line)));
    return D.facts.places
      ? section("findings", "What to do", h("div", { class: "card dim" }, ...lines))
      : null;
  }
  const cards = D.findings.map((f) =>
    h(
      "li",
      {},
      h("div", { class: `severity ${f.severity}` }, f.severity),
      h(
        "div",
        {},
        h("b", {}, text(f.title)),
        ", ",
        text(f.gain),
        h("br"),
        f.text >= 0 && [mention(f.statement, f.text), h("br")],
        h("span", { class: "dim" }, text(f.place)),
        f.lines.map(([kind, line]) => h("p", { class: kind }, text(line))),
      ),
    )
  );
  const list = (items) => h("ol", { class: "card findings" }, items);
  return section(
    "findings",
    "What to do",
    D.headline.length > 1 && h("p", {}, text(D.headline[1]), "."),
    list(cards.slice(0, FIRST_FINDINGS)),
    more(cards.slice(FIRST_FINDINGS), "finding", list),
  );
}

function requests() {
  if (!D.spans.length) return null;
  const columns = [
    ["request", false],
    ["count", true],
    ["mean", true],
    ["p95", true],
    ["longest", true],
    ["database", true],
    ["queries (mean)", true],
    ["queries (max)", true],
    ["errors", true],
  ];
  const rows = D.spans.map((s) => [
    text(s.name),
    count(s.count),
    duration(s.mean_ns),
    duration(s.p95_ns),
    duration(s.max_ns),
    percent(s.database_share),
    average(s.queries_mean),
    average(s.queries_max),
    count(s.errors),
  ]);
  const repeats = D.repeats.map((r) =>
    h(
      "li",
      {},
      h("b", {}, `${average(r.each)} times`),
      ` per request on average, in ${counted(r.spans, "request")} `,
      text(r.span),
      ` (up to ${count(r.most)} in one): `,
      mention(r.statement, r.text),
      h("br"),
      h("span", { class: "dim" }, siteText(r.site)),
    )
  );
  return section(
    "requests",
    "Requests",
    table("Requests", columns, rows),
    waterfalls(),
    repeats.length
      ? [h("h3", {}, "The same query again and again"), h("ul", { class: "card plain" }, repeats)]
      : null,
  );
}

function loops() {
  if (!D.loops.length) return null;
  const columns = [
    ["cause", false],
    ["times", true],
    ["longest", true],
    ["total", true],
    ["in the database", true],
    ["others waited", true],
  ];
  return section(
    "loops",
    "Event loops",
    D.loops.map((loop) => [
      h("h3", {}, text(loop.title)),
      h(
        "div",
        { class: "pair" },
        distribution(
          [["timers: how late", ...loop.timer], ["heartbeats: how late", ...loop.beat]],
          "Share of timers and heartbeats with at most this lateness",
        ),
        loop.stalls.length
          ? h(
            "div",
            {},
            table(
              "What blocked the loop",
              columns,
              loop.stalls.map((s) => [
                h(
                  "span",
                  {},
                  siteText(s.site),
                  s.text >= 0 && [h("br"), mention(s.statement, s.text)],
                ),
                count(s.count),
                duration(s.max_ns),
                duration(s.total_ns),
                percent(s.database_share),
                duration(s.delay_ns),
              ]),
            ),
          )
          : h("p", { class: "card dim" }, "Nothing blocked the loop."),
      ),
      stallTimes(loop.events),
    ]),
  );
}

function locks() {
  if (!D.locks.length) return null;
  const columns = [["held by", false], ["kind", false], ["times", true], ["total", true], [
    "longest",
    true,
  ], ["rows changed", true]];
  return section(
    "locks",
    "Locks on files",
    table(
      "Locks",
      columns,
      D.locks.map((l) => [
        h(
          "span",
          {},
          mention(l.statement, l.text),
          h("br"),
          h("span", { class: "dim" }, siteText(l.site), " · ", text(l.database)),
        ),
        l.kind,
        count(l.count),
        duration(l.total_ns),
        duration(l.max_ns),
        count(l.changed_rows),
      ]),
    ),
  );
}
