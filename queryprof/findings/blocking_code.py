"""Findings about code of the program that blocks an event loop, without a slow statement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.loops import COLLECTION, COMPUTING, HOLDING, WAITING, StallSummary
from queryprof.analysis.units import counted, duration, shorten
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.program import Program

ADVICE = {
    WAITING: "The code waits: await the slow call, or run it with asyncio.to_thread().",
    COMPUTING: (
        "The code computes in Python: do less per step, let the loop run between pieces (await"
        " asyncio.sleep(0)), or run the code in a ProcessPoolExecutor."
    ),
    HOLDING: (
        "C code computes and lets no other thread run, so moving it to a thread does not help:"
        " use a ProcessPoolExecutor."
    ),
    COLLECTION: "The garbage collector runs: create fewer objects, or call gc.freeze() first.",
}
"""The fix for each category of stall that the database does not cause."""

NEED = "queryprof does not know whether other tasks needed the loop during this work."

MIN_TIMES = 2
"""Code that blocks the loop fewer times may be startup code."""

MIN_CALLBACKS = 2
"""With fewer delayed callbacks per stall, the delayed callback may be a progress display's timer.
"""


OTHERS_SHARE = 0.2
"""Another statement is named as a cause if it takes at least this share of a stall."""


def find_blocking_code(program: Program) -> Iterator[Finding]:
    """Find functions that block an event loop while other callbacks are due."""
    for loop in program.report.loops:
        for stall in loop.stalls:
            is_wait, is_again = stall.category == WAITING, stall.stall.count >= MIN_TIMES
            if stall.category not in ADVICE or not stall.delayed or not (is_wait or is_again):
                continue
            serves_many = stall.delayed >= MIN_CALLBACKS * stall.stall.count
            most = Severity.MEDIUM if serves_many or is_wait else Severity.LOW
            site = stall.site if stall.site.frame else CallSite(stall.stall.function)
            if site.frame is None or not site.frame.file:
                continue  # many lines, or unknown: there is no line to change
            finding = program.make_finding_at_site(
                "blocked_loop",
                "",
                site,
                stall.stall.total_ns,
                (blocking_in_words(loop.loop.kind, stall), delays_in_words(stall)),
                ADVICE[stall.category],
                doubt="" if is_wait and is_again else NEED,
                most=Severity.HIGH if is_wait and is_again else most,
            )
            if finding:
                yield finding


def merge_with_causes(
    findings: Iterable[Finding], blocking: Iterable[Finding]
) -> Iterator[Finding]:
    """Yield all findings. Merge each finding of `blocking` into the finding about its cause, if
    there is one: a finding about the same line whose fix saves at least half of the blocked time.
    """
    found = list(findings)
    for one in blocking:
        same = [at for at, each in enumerate(found) if each.site.frame == one.site.frame]
        cause = max(same, key=lambda at: found[at].gain_ns, default=None)
        if cause is None or 2 * found[cause].gain_ns < one.gain_ns:
            yield one
        else:
            evidence = (*found[cause].evidence, *one.evidence)
            found[cause] = replace(found[cause], evidence=evidence)
    yield from found


def blocking_in_words(kind: str, stall: StallSummary) -> str:
    """Return how often and how long code blocked a loop, and which further statement took part."""
    others = [one for one in stall.causes[1:] if one.share >= OTHERS_SHARE]
    beside = f", together with {shorten(others[0].statement, 60)}" if others else ""
    if stall.stall.count == 1:
        return f"it blocked the {kind} loop once for {duration(stall.stall.max_ns)}{beside}"
    return (
        f"it blocked the {kind} loop {counted(stall.stall.count, 'time')}"
        f" (mean {duration(stall.mean_ns)}, longest {duration(stall.stall.max_ns)}){beside}"
    )


def delays_in_words(stall: StallSummary) -> str:
    """Return how long callbacks waited while a loop was blocked."""
    return f"{counted(stall.delayed, 'callback')} waited a total of {duration(stall.delay_ns)}"
