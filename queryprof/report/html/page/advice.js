// What was proved on a copy of the database.

// The recorded time as it is, and what is left of it with each further change: a bar each.
function advice() {
  const a = D.advice;
  if (!a) return null;
  const step = (at, words) =>
    h(
      "li",
      {},
      h("span", { class: "bar", css: { width: `${a.left[at] * 100}%` } }),
      h("span", { class: "rank" }, at || ""),
      h("span", { class: "right" }, duration(a.left_ns[at])),
      h("span", { class: "right dim wide" }, percent(a.left[at])),
      h("span", { class: "what" }, words),
    );
  const steps = a.changes.map((change, at) =>
    step(at + 1, [
      h("span", { class: "sql" }, text(change.sql)),
      h("br"),
      h("span", { class: "dim" }, text(change.result)),
    ])
  );
  const columns = [["statement", false], ["before", true], ["after", true], ["result", false]];
  return section(
    "proved",
    text(a.title),
    h("p", {}, text(a.summary)),
    a.cautions.length > 0 &&
      h("ul", { class: "cautions" }, a.cautions.map((caution) => h("li", {}, text(caution)))),
    steps.length > 0 && h("ol", { class: "card pareto" }, step(0, "without changes"), steps),
    steps.length > 0 &&
      h(
        "p",
        { class: "dim" },
        "Bars and figures: the recorded time that remains with this change and all changes above it.",
      ),
    a.proofs.length > 0 && plainTable(
      "Statements, before and after",
      columns,
      a.proofs.map((p) => [
        mention(p.statement, p.text),
        duration(p.before_ns),
        duration(p.after_ns),
        text(p.result),
      ]),
    ),
  );
}
