"""The slowest spans as text."""

from __future__ import annotations

from queryprof.analysis.delays import Delay
from queryprof.analysis.units import counted, duration
from queryprof.model import SlowSpan, SpanRun
from queryprof.report.places import Places

NO_SPANS = "No span has ended: nothing marked requests or other pieces of work."
NOT_RECORDED = "This trace has no individual spans, only their totals."
OTHERS = "(other)"
"""The statement of the run that sums up all calls after the first 63 runs."""

NO_CALLS = "It called no database."
NOT_KEPT = "Its calls were not kept: too many ran at once."

THE_REST = "(everything that followed)"


DELAY_TEXTS = {
    "queue": "waiting for a free thread: the thread pool was busy",
    "cpu": "of CPU time in its own thread (including queries)",
    "others": "or less waiting for the GIL or a CPU core, which other threads were using",
}
"""The text for each kind of delay that has no call site."""


def no_calls_sentence(one: SlowSpan) -> str:
    """Return the sentence for a span whose calls were not kept, or that made no calls."""
    return NOT_KEPT if one.executions else NO_CALLS


def delay_in_words(delay: Delay, places: Places) -> str:
    """Describe what delayed a span."""
    at = places.frame_text(delay.frame) if delay.frame else "(unknown)"
    if delay.kind == "stall":
        stalls = counted(delay.event_count, "stall")
        return f"event loop blocked for {duration(delay.ns)} at {at} ({stalls})"
    if delay.kind in DELAY_TEXTS:
        return f"{duration(delay.ns)} {DELAY_TEXTS[delay.kind]}"
    waits = counted(delay.event_count, "wait")
    return f"waited {duration(delay.ns)} for a lock taken at {at} ({waits})"


def run_statement(run: SpanRun) -> str:
    """Return the statement of a run of calls."""
    return THE_REST if run.statement == OTHERS and not run.path else run.statement
