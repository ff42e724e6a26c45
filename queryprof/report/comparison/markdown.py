"""A comparison as Markdown, for a comment on a pull request."""

from __future__ import annotations

from queryprof.comparing.comparison_result import Comparison, StatementChange, Verdict
from queryprof.report.inert import escape_markdown, markdown_code
from queryprof.report.places import Places
from queryprof.report.text.comparison import (
    cautions,
    metric_name,
    ratio,
    summary,
    value,
    what_changed,
    where,
)


def comparison_markdown(comparison: Comparison, places: Places) -> str:
    """Return the changed statements, followed by the metrics of the whole runs."""
    lines = [f"**{summary(comparison)}**", ""]
    changed = [c for c in comparison.statements if c.verdict is not Verdict.SAME]
    shown = [c for c in changed if c.verdict is not Verdict.UNCLEAR]
    if shown:
        lines += ["| verdict | statement | change | where |", "| --- | --- | --- | --- |"]
        lines += [_row(change, places) for change in shown]
        lines.append("")
    lines += [
        "| metric | before | after | change | verdict |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    lines += [
        f"| {metric_name(c)} | {value(c, c.before)} | {value(c, c.after)} | {ratio(c)}"
        f" | {c.verdict} |"
        for c in comparison.whole
    ]
    lines += [f"\n> {escape_markdown(caution)}" for caution in cautions(comparison)]
    return "\n".join(lines)


def _row(change: StatementChange, places: Places) -> str:
    kind = "" if change.kind == "known" else f" ({change.kind})"
    cells = (
        f"{change.verdict}{kind}",
        markdown_code(change.statement),
        escape_markdown(what_changed(change)),
        markdown_code(where(change, places)),
    )
    return "| " + " | ".join(cells) + " |"
