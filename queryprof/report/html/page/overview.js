// The first page, from its sentence down to the findings.

function title() {
  const { vital, places, vital_share: share } = D.facts;
  if (!places) return "No database time";
  return `${grouped(vital)} of ${counted(places, "place")} make up ${percent(share)} of the database time`;
}

function facts() {
  const f = D.facts;
  const fact = (value, words) => h("li", {}, h("b", {}, value), ` ${words}`);
  return h("ul", { class: "facts" },
    fact(duration(f.database_ns), `in the database, ${percent(f.database_share)} of ${duration(f.run_ns)}`),
    fact(count(f.executions), `executions of ${counted(f.statements, "statement")}`),
    fact(count(f.rows), "rows"),
    fact(count(f.errors), "errors"),
    f.processes > 1 && fact(count(f.processes), "processes"),
    fact(duration(f.profiler_ns), "recording cost (estimate)"),
    h("li", { class: "sql" }, text(f.command)));
}

const cautions = () =>
  D.cautions.length
    ? h("ul", { class: "cautions" }, D.cautions.map((caution) => h("li", {}, text(caution))))
    : D.facts.places ? h("p", { class: "dim" }, D.complete) : null;

// The vital few as rows: a bar each, and what they make up together as a line over all of them.
function pareto() {
  const { statement, site, self_ns: spent, share, cumulative } = D.pareto;
  if (!statement.length) return null;
  const rows = statement.map((number, at) =>
    h("li", { class: at < D.facts.vital ? "" : "rest" },
      h("span", { class: "rank" }, at + 1),
      h("span", { class: "bars" },
        h("span", { class: "bar", css: { width: `${share[at] * 100}%` } }),
        h("span", { class: "dot", css: { left: `${cumulative[at] * 100}%` } })),
      h("span", { class: "right" }, percent(share[at])),
      h("span", { class: "right dim wide" }, percent(cumulative[at])),
      h("span", { class: "what" },
        mention(number, -1), h("br"),
        h("span", { class: "dim" }, siteText(site[at]), " · ", duration(spent[at])),
        against(D.pareto, at))));
  const height = statement.length;
  const points = cumulative.map((value, at) => `${value * 100},${at + 0.5}`).join(" ");
  return section("vital", "The vital few",
    h("div", { class: "card pareto" },
      h("ol", {}, rows),
      h("div", { class: "curve", "aria-hidden": "true" },
        svg("svg", { viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none" },
          svg("line", { x1: 80, x2: 80, y1: 0, y2: height, class: "eighty" }),
          svg("polyline", { points })))),
    h("p", { class: "dim" }, `Bars: share of the database time. Line: what they make up together; dashed: 80%.${
      D.facts.places > height ? ` ${grouped(D.facts.places - height)} more places are among the statements below.` : ""}`));
}

// What it was before, where the page compares with another recording.
function against(columns, at) {
  if (!columns.before_ns) return null;
  const before = columns.before_ns[at], after = columns.self_ns[at];
  return h("span", { class: changeClass(before, after) },
    before === null ? " · new" : ` · was ${duration(before)}: ${change(before, after)}`);
}

const changeClass = (before, after) =>
  before === null || after > before * 1.05 ? "worse" : after < before * 0.95 ? "better" : "dim";

function findings() {
  if (!D.findings.length) {
    return D.facts.places ? section("findings", "What to do", h("p", { class: "card dim" }, D.nothing)) : null;
  }
  return section("findings", "What to do", h("ol", { class: "card findings" }, D.findings.map((f) =>
    h("li", {},
      h("div", { class: `severity ${f.severity}` }, f.severity),
      h("div", {},
        h("b", {}, text(f.title)), ", ", text(f.gain), h("br"),
        f.text >= 0 && [mention(f.statement, f.text), h("br")],
        h("span", { class: "dim" }, text(f.place)),
        f.lines.map(([kind, line]) => h("p", { class: kind }, text(line))))))));
}

function requests() {
  if (!D.spans.length) return null;
  const columns = [["request", false], ["count", true], ["mean", true], ["p95", true], ["longest", true],
    ["database", true], ["queries each", true], ["most", true], ["errors", true]];
  const rows = D.spans.map((s) => [
    text(s.name), count(s.count), duration(s.mean_ns), duration(s.p95_ns), duration(s.max_ns),
    percent(s.database_share), average(s.queries_mean), average(s.queries_max), count(s.errors)]);
  const repeats = D.repeats.map((r) => h("li", {},
    h("b", {}, `${average(r.each)} times`), ` in each of ${counted(r.spans, "request")} `, text(r.span),
    ` (at most ${count(r.most)}): `, mention(r.statement, r.text), h("br"), h("span", { class: "dim" }, siteText(r.site))));
  return section("requests", "Requests", plainTable("Requests", columns, rows), waterfalls(),
    repeats.length ? [h("h3", {}, "The same query again and again"), h("ul", { class: "card plain" }, repeats)] : null);
}

function loops() {
  if (!D.loops.length) return null;
  const columns = [["what kept it from running", false], ["times", true], ["longest", true], ["in all", true],
    ["in the database", true], ["others waited", true]];
  return section("loops", "Event loops", D.loops.map((loop) => [
    h("h3", {}, text(loop.title)),
    h("div", { class: "pair" },
      distribution([["timers: how late", ...loop.timer], ["heartbeats: how late", ...loop.beat]],
        "Share of timers and heartbeats that were at most so late"),
      loop.stalls.length
        ? plainTable("What blocked the loop", columns, loop.stalls.map((s) => [
            h("span", {}, siteText(s.site), s.text >= 0 && [h("br"), mention(s.statement, s.text)]),
            count(s.count), duration(s.max_ns), duration(s.total_ns), percent(s.database_share), duration(s.delay_ns)]))
        : h("p", { class: "card dim" }, "Nothing blocked it.")),
    stallTimes(loop.events)]));
}

function locks() {
  if (!D.locks.length) return null;
  const columns = [["held by", false], ["kind", false], ["times", true], ["in all", true], ["longest", true], ["rows changed", true]];
  return section("locks", "Locks on files", plainTable("Locks", columns, D.locks.map((l) => [
    h("span", {}, mention(l.statement, l.text), h("br"), h("span", { class: "dim" }, siteText(l.site), " · ", text(l.database))),
    l.kind, count(l.count), duration(l.total_ns), duration(l.max_ns), count(l.changed_rows)])));
}
