"""A finding as text: its title and the lines below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from queryprof.analysis.units import duration, percent
from queryprof.findings.finding import CATEGORIES, Finding, Severity
from queryprof.findings.whole import SERVER_BUSY_TIME
from queryprof.report.places import Places


def no_findings_sentence(unknown: Sequence[str]) -> str:
    """Return the sentence for an empty list. `unknown` lists causes that could not be checked."""
    if unknown:
        return "No findings, but some data is missing."
    return "No findings: no known cause takes much of the time."


def category_title(finding: Finding) -> str:
    """Return the title of the finding's category."""
    return CATEGORIES[finding.category].title


NO_TIME = {
    "lock_upgrade": "calls fail",
    "pinned_wal": "the log grows",
    "long_transaction": "no call waited",
}
"""By category: the text to print if the time saving of a finding is unknown."""

FREES_LOOP = frozenset({"blocked_loop"})
"""Categories whose fix lets other tasks run. The statement itself does not get faster."""

COUNTS = {2: "two", 3: "three"}


def headline(finding: Finding, places: Places) -> str:
    """Describe the finding in one line: place, title and saving."""
    return f"{places.site(finding.site)}: {category_title(finding)}, {saving_in_words(finding)}"


def combined_saving(findings: Sequence[Finding]) -> str:
    """Return a sentence on the combined saving of the first findings. Returns "" if fewer than two
    findings matter, or if the savings overlap.

    Findings on the same line may save the same time, so only the first finding of a line counts.
    """
    relevant = [
        one
        for one in findings[: max(COUNTS)]
        if one.severity is not Severity.LOW and one.category not in FREES_LOOP
    ]
    first = next((one for one in relevant if 0 < one.share < 1), None)  # other shares are unknown
    relevant = [one for one in relevant if first and one.whole == first.whole]
    relevant = list({one.site.frame: one for one in reversed(relevant)}.values())
    if first is None or len(relevant) < min(COUNTS):
        return ""
    whole_ns = first.gain_ns / first.share
    gain_ns = sum(one.gain_ns for one in relevant)
    if gain_ns >= whole_ns:
        return ""  # the savings overlap: their sum reaches the whole
    number = COUNTS[len(relevant)]
    is_all = len(relevant) == len(findings[: max(COUNTS)])
    changes = f"These {number} changes" if is_all else f"{number.capitalize()} of these changes"
    return (
        f"{changes} together save up to {duration(gain_ns)} of the {first.whole}"
        f" ({duration(whole_ns)})"
    )


def server_hint(findings: Sequence[Finding]) -> str:
    """Return advice to mark a server's requests for more precise findings; "" if not needed."""
    if not any(one.whole == SERVER_BUSY_TIME for one in findings):
        return ""
    return (
        "Its requests are not marked: wrap the application in queryprof.WsgiMiddleware or"
        " AsgiMiddleware to see the queries and the time of each request"
    )


def saving_in_words(finding: Finding) -> str:
    """Return the time that a fix saves, or the statement's time if no fix is known."""
    if not finding.gain_ns:
        return NO_TIME.get(finding.category, "saving unknown")
    limit = "at least" if finding.is_least else "up to"
    saved, share = duration(finding.gain_ns), percent(finding.share)
    if finding.is_unexplained:
        return f"takes {saved} ({share} of the {finding.whole})"
    wins = "frees the event loop for" if finding.category in FREES_LOOP else "saves"
    return f"{wins} {limit} {saved} ({share} of the {finding.whole})"


def place_to_change(finding: Finding, places: Places) -> str:
    """Return the place to change: the call, its caller and the loop around it."""
    place = places.site(finding.site)
    for caller in finding.site.callers[:1]:
        place += f" <- {places.frame_text(caller)}"
    if finding.loop and finding.loop.frame:
        place += f", in the loop at {places.where(finding.loop.frame)}"
    return place


def fix_code(finding: Finding) -> list[str]:
    """Return the fix as SQL or Python, and as a migration if it is an index."""
    return [code for code in (finding.code, finding.migration) if code]


def detail_lines(finding: Finding) -> Iterator[tuple[str, str]]:
    """Yield the lines below the statement with their kinds: evidence, fix, code or doubt."""
    for evidence in finding.evidence:
        yield "evidence", evidence
    yield "fix", finding.fix
    for code in fix_code(finding):
        for line in code.splitlines():
            yield "code", line
    if finding.doubt:
        yield "doubt", f"Not sure: {finding.doubt}"


def one_paragraph_message(finding: Finding) -> str:
    """Return the whole finding as one paragraph, for tools that show only one paragraph."""
    parts = [f"{category_title(finding)}: {saving_in_words(finding)}", *finding.evidence]
    rest = [
        finding.fix,
        *([finding.code] if finding.code else []),
        *([f"Not sure: {finding.doubt}"] if finding.doubt else []),
    ]
    return ". ".join(text.rstrip(".") for text in parts) + ". " + " ".join(rest)
