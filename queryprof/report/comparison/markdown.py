"""A comparison as Markdown, for a comment on a pull request."""

from __future__ import annotations

from queryprof.comparing.comparison_result import Comparison, StatementChange, Verdict
from queryprof.report.inert import escape_markdown, inline_markdown_code
from queryprof.report.places import Places
from queryprof.report.text.comparison import (
    change_in_percent,
    comparison_summary,
    metric_name,
    metric_value,
    most_changed_site,
    statement_change_in_words,
    verdict_cautions,
)


def comparison_markdown(comparison: Comparison, places: Places) -> str:
    """Return the changed statements, followed by the metrics of the whole runs."""
    lines = [f"**{comparison_summary(comparison)}**", ""]
    changed = [c for c in comparison.statements if c.verdict is not Verdict.SAME]
    shown = [c for c in changed if c.verdict is not Verdict.UNCLEAR]
    if shown:
        lines += ["| verdict | statement | change | where |", "| --- | --- | --- | --- |"]
        lines += [_change_row(change, places) for change in shown]
        lines.append("")
    lines += [
        "| metric | before | after | change | verdict |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    lines += [
        f"| {metric_name(c)} | {metric_value(c, c.before)} | {metric_value(c, c.after)}"
        f" | {change_in_percent(c)} | {c.verdict} |"
        for c in comparison.whole
    ]
    lines += [f"\n> {escape_markdown(caution)}" for caution in verdict_cautions(comparison)]
    return "\n".join(lines)


def _change_row(change: StatementChange, places: Places) -> str:
    kind = "" if change.kind == "known" else f" ({change.kind})"
    cells = (
        f"{change.verdict}{kind}",
        inline_markdown_code(change.statement),
        escape_markdown(statement_change_in_words(change)),
        inline_markdown_code(most_changed_site(change, places)),
    )
    return "| " + " | ".join(cells) + " |"
