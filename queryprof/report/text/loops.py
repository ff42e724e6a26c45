"""Findings on event loops as sentences."""

from __future__ import annotations

from queryprof.analysis.loops import (
    COMPUTING,
    DATABASE,
    HOLDING,
    LoopSummary,
    StallSummary,
)
from queryprof.analysis.units import counted, duration, percent
from queryprof.findings import blocking_code
from queryprof.report.places import Places

ADVICE = {
    DATABASE: "Move it off the loop (aiosqlite, or asyncio.to_thread).",
    **blocking_code.ADVICE,
}

ONCE = "The code ran once. If it is start-up work, run it before the loop serves requests."
"""The advice for a computation that ran only once."""

BEATS_FOR_P95 = 20
"""Minimum number of heartbeats for a 95th percentile (1 heartbeat in 20 is later)."""

STATEMENT_SHOWN = 60
"""Length limit of a statement inside a sentence, in characters."""


def stall_description(finding: StallSummary, places: Places) -> str:
    """Describe the stalls of one function: how long they took, what they delayed, and the fix."""
    stall = finding.stall
    seen = finding.site.frame
    where = places.frame_text(seen or stall.function) or "something unknown"
    times = "once" if stall.count == 1 else f"{stall.count:,} times"
    average = f"for {duration(finding.mean_ns)}" + (" on average" if stall.count > 1 else "")
    sentence = f"{where} blocked the loop {average}, {times}"
    if finding.causes and finding.category == DATABASE:
        cause = finding.causes[0]
        text = " ".join(cause.statement.split())
        shown = text if len(text) <= STATEMENT_SHOWN else text[: STATEMENT_SHOWN - 3] + "..."
        calls = f" in {counted(cause.calls, 'call')}" if cause.calls > stall.count else ""
        sentence += f", {percent(cause.share)} of it in {shown}{calls}"
    if finding.mean_delay_ns is not None:
        were = "was" if finding.delayed == 1 else "were"
        sentence += f"; {counted(finding.delayed, 'callback')} that {were} due meanwhile waited "
        if finding.delayed == 1:
            sentence += duration(finding.delay_ns)
        else:
            sentence += (
                f"{duration(finding.mean_delay_ns)} on average,"
                f" {duration(finding.delay_ns)} in total"
            )
    is_once = stall.count == 1 and finding.category in (COMPUTING, HOLDING)
    return f"{sentence}. {ONCE if is_once else ADVICE.get(finding.category, '')}".rstrip()


def many_short_steps_note(finding: LoopSummary, late_ns: int) -> str | None:
    """Return a note if a loop is late although no single step is long; otherwise None."""
    lag = finding.beat_lag.p95_ns
    if finding.beat_lag.count < BEATS_FOR_P95 or lag is None or lag < late_ns:
        return None
    if finding.stalls or not finding.functions:
        return None
    first = finding.functions[0]
    return (
        f"No single step is a stall, but 1 in 20 heartbeats is {duration(lag)} late or more:"
        f" many steps in a row add up. {percent(first.share)} of the busy time is"
        f" {first.step.function.function}(), {first.step.durations.count:,} steps of"
        f" {duration(first.summary.mean_ns)}."
    )
