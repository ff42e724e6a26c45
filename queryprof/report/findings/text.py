"""A finding in words: its title, and what it says below it."""

from __future__ import annotations

from collections.abc import Iterator

from queryprof.analysis.findings.finding import CATEGORIES, Finding
from queryprof.analysis.units import duration, percent
from queryprof.report.places import Places

NOTHING = "No findings: no cause that queryprof knows takes much of the time."


def title(finding: Finding) -> str:
    """What is wrong, in a few words."""
    return CATEGORIES[finding.category]


def gain(finding: Finding) -> str:
    """The most that a fix can win."""
    if not finding.gain_ns:
        return "calls fail"
    return f"up to {percent(finding.share)} of the {finding.whole} ({duration(finding.gain_ns)})"


def change_at(finding: Finding, places: Places) -> str:
    """Where to change the program: the call, and the loop around it."""
    place = places.site(finding.site)
    for caller in finding.site.callers[:1]:
        place += f" <- {places.frame(caller)}"
    if finding.loop and finding.loop.frame:
        place += f", in the loop at {places.where(finding.loop.frame)}"
    return place


def details(finding: Finding) -> Iterator[tuple[str, str]]:
    """The lines below the statement, each with its kind: evidence, fix, code or doubt."""
    for evidence in finding.evidence:
        yield "evidence", evidence
    yield "fix", finding.fix
    if finding.code:
        yield "code", finding.code
    if finding.doubt:
        yield "doubt", f"Not sure: {finding.doubt}"


def message(finding: Finding) -> str:
    """All in one paragraph, for tools that show one."""
    said = [f"{title(finding)}: {gain(finding)}", *finding.evidence]
    rest = [
        finding.fix,
        *([finding.code] if finding.code else []),
        *([f"Not sure: {finding.doubt}"] if finding.doubt else []),
    ]
    return ". ".join(text.rstrip(".") for text in said) + ". " + " ".join(rest)
