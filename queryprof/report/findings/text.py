"""A finding in words: its title, and the lines below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from queryprof.analysis.findings.finding import CATEGORIES, Finding, Severity
from queryprof.analysis.findings.whole import BUSY
from queryprof.analysis.units import duration, percent
from queryprof.report.places import Places


def nothing_found(unknown: Sequence[str]) -> str:
    """The sentence where there are no findings, of which `unknown` may be the reason."""
    if unknown:
        return "No findings among what is known."
    return "No findings: no cause that queryprof knows takes much of the time."


def title(finding: Finding) -> str:
    """The name of the kind of finding."""
    return CATEGORIES[finding.category].title


NO_TIME = {
    "lock_upgrade": "calls fail",
    "pinned_wal": "the log grows",
    "long_transaction": "no call waited for it",
}
"""What a fix prevents, if the time that it saves is unknown."""

COUNTS = {2: "Two changes", 3: "Three changes"}


def headline(finding: Finding, places: Places) -> str:
    """The finding in a sentence: where, what, and the time that a fix saves."""
    return f"{places.site(finding.site)}: {title(finding)}, {gain(finding)}"


def together(findings: Sequence[Finding]) -> str:
    """The time that the first findings save together; "" if fewer than two save much."""
    chosen = [one for one in findings[: max(COUNTS)] if one.severity is not Severity.LOW]
    first = next((one for one in chosen if 0 < one.share < 1), None)  # else of what is not known
    chosen = [one for one in chosen if first and one.whole == first.whole]
    if first is None or len(chosen) < min(COUNTS):
        return ""
    whole_ns = first.gain_ns / first.share
    gain_ns = min(sum(one.gain_ns for one in chosen), whole_ns)
    return (
        f"{COUNTS[len(chosen)]} save up to {duration(gain_ns)} of {duration(whole_ns)} (the"
        f" {first.whole})"
    )


def hint(findings: Sequence[Finding]) -> str:
    """What would make a server's findings more precise; "": nothing is missing."""
    if not any(one.whole == BUSY for one in findings):
        return ""
    return (
        "Its requests are not marked: with queryprof.WsgiMiddleware or AsgiMiddleware around the"
        " application each has its queries and its time"
    )


def gain(finding: Finding) -> str:
    """The time that a fix saves."""
    if not finding.gain_ns:
        return NO_TIME.get(finding.category, "saving unknown")
    limit = "at least" if finding.is_least else "up to"
    saved, share = duration(finding.gain_ns), percent(finding.share)
    return f"saves {limit} {saved} ({share} of the {finding.whole})"


def change_at(finding: Finding, places: Places) -> str:
    """Where to change the program: the call, and the loop around it."""
    place = places.site(finding.site)
    for caller in finding.site.callers[:1]:
        place += f" <- {places.frame(caller)}"
    if finding.loop and finding.loop.frame:
        place += f", in the loop at {places.where(finding.loop.frame)}"
    return place


def codes(finding: Finding) -> list[str]:
    """The SQL or Python of the fix, and an index as a migration of the program's library."""
    return [code for code in (finding.code, finding.migration) if code]


def details(finding: Finding) -> Iterator[tuple[str, str]]:
    """The lines below the statement, each with its kind: evidence, fix, code or doubt."""
    for evidence in finding.evidence:
        yield "evidence", evidence
    yield "fix", finding.fix
    for code in codes(finding):
        yield "code", code
    if finding.doubt:
        yield "doubt", f"Not sure: {finding.doubt}"


def message(finding: Finding) -> str:
    """All in one paragraph, for tools that show one."""
    parts = [f"{title(finding)}: {gain(finding)}", *finding.evidence]
    rest = [
        finding.fix,
        *([finding.code] if finding.code else []),
        *([f"Not sure: {finding.doubt}"] if finding.doubt else []),
    ]
    return ". ".join(text.rstrip(".") for text in parts) + ". " + " ".join(rest)
