"""Rules that hold for every report on any recording.

A figure that breaks one of them is wrong in every output: a share above 1, a negative time, a part
that exceeds its total, a count that differs between two tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from queryprof.analysis.report import Report
from queryprof.analysis.timeline import timeline_of
from queryprof.analysis.views import DIMENSIONS
from queryprof.findings.lookup import findings_of
from queryprof.model import Aggregate, Distribution, Profile
from queryprof.operations import FETCH_OPERATIONS

ROUNDING = 1e-6
"""The rounding of shares, which are quotients of whole numbers."""

INTERVALS = 60

TICKS_NS = 20_000_000
"""The resolution of the system's accounting: the intervals come from /proc, which rounds, and the
sum from getrusage(2)."""


def impossible(report: Report) -> Iterator[str]:
    """Yield a sentence for each impossible figure."""
    profile = report.profile
    for aggregate in profile.aggregates:
        yield from _of_aggregate(aggregate)
    yield from _of_totals(report)
    yield from _of_shares(report)
    yield from _of_loops(report)
    yield from _of_spans(report)
    yield from _of_files(report)
    yield from _of_threads(profile)
    yield from _of_timeline(profile)


def _negative(owner: str, **figures: float | None) -> Iterator[str]:
    for name, value in figures.items():
        if value is not None and value < 0:
            yield f"{owner}: {name} is {value}"


def _above(owner: str, part: float, whole: float, what: str) -> Iterator[str]:
    if part > whole * (1 + ROUNDING):
        yield f"{owner}: {what}: {part} of {whole}"


def _of_aggregate(a: Aggregate) -> Iterator[str]:
    owner = f"{a.operation} {a.statement[:60]!r}"
    figures = a._asdict()
    for text in ("statement", "path", "span", "thread", "operation", "histogram"):
        del figures[text]
    yield from _negative(owner, **figures)
    yield from _above(owner, a.errors, a.count, "errors of calls")
    yield from _above(owner, a.self_ns, a.total_ns, "its own time of all")
    # A call may have started, but not ended, when the recording did.
    yield from _above(owner, a.counted, a.count + 1, "counted executions of all")
    yield from _above(owner, a.page_fetch_samples, a.count, "page samples of executions")
    if a.count:
        yield from _above(owner, a.min_ns, a.max_ns, "shortest of longest call")
    if a.operation not in FETCH_OPERATIONS:
        yield from _above(owner, sum(a.histogram.values()), a.count, "durations of executions")
    if min(a.histogram.values(), default=0) < 0:
        yield f"{owner}: {dict(a.histogram)}"


def _of_totals(report: Report) -> Iterator[str]:
    """Each view has all calls and all time, and the overview agrees."""
    overview, ranking = report.overview, report.ranking
    yield from _negative(
        "overview",
        run_ns=overview.run_ns,
        process_ns=overview.process_ns,
        database_ns=overview.database_ns,
        database_share=overview.database_share,
        profiler_ns=overview.profiler_ns,
    )
    for process in report.profile.processes:
        yield from _negative(f"process {process.pid}", wall_ns=process.wall_ns)
    whole = Report(report.profile)
    for dimension in DIMENSIONS:
        rows = whole.view(dimension).rows
        for name, expected, found in (
            ("calls", overview.calls, sum(row.totals.calls for row in rows)),
            ("rows", overview.rows, sum(row.totals.rows for row in rows)),
            ("errors", overview.errors, sum(row.totals.errors for row in rows)),
            ("time", overview.database_ns, sum(row.totals.self_ns for row in rows)),
        ):
            if found != expected:
                yield f"by {dimension}: {name} are {found}, not {expected}"
    if overview.database_ns != ranking.database_ns:
        yield f"the ranking has {ranking.database_ns} ns, the overview {overview.database_ns}"
    errors = Counter[str]()
    for error in report.profile.errors:
        errors[error.operation] += error.count
    failed = Counter[str]()
    for aggregate in report.profile.aggregates:
        failed[aggregate.operation] += aggregate.errors
    others = sum(error.count for error in report.profile.errors if error.statement == "(other)")
    for operation in errors:  # those beyond the table are of any operation
        kept = errors[operation] - (others if operation == "execute" else 0)
        yield from _above(operation, kept, failed[operation], "errors with a type")
    yield from _above("all", sum(errors.values()), sum(failed.values()), "errors with a type")


def _of_shares(report: Report) -> Iterator[str]:
    found = {
        "what the vital few make up": report.ranking.vital_share,
        **{f"rank {b.rank}": b.share for b in report.ranking.bottlenecks},
        **{f"up to rank {b.rank}": b.cumulative_share for b in report.ranking.bottlenecks},
        **{f"finding {f.category}": f.share for f in findings_of(report)},
    }
    for dimension in DIMENSIONS:
        rows = report.view(dimension).rows
        found |= {f"by {dimension}: {row.name[:60]!r}": row.share for row in rows}
    for name, share in found.items():
        yield from _negative(name, share=share)
        yield from _above(name, share, 1, "a share")
    for before, after in pairwise(report.ranking.bottlenecks):
        if after.cumulative_share < before.cumulative_share - ROUNDING:
            yield f"rank {after.rank}: less time up to here than up to the one before"


def _of_distribution(owner: str, d: Distribution) -> Iterator[str]:
    yield from _negative(owner, count=d.count, total_ns=d.total_ns, max_ns=d.max_ns)
    yield from _above(owner, d.max_ns, d.total_ns, "the longest of all")
    yield from _above(owner, d.total_ns, d.count * d.max_ns, "all of the longest each time")
    if d.histogram and sum(d.histogram.values()) != d.count:
        yield f"{owner}: {d.count} are {sum(d.histogram.values())} in the histogram"


def _of_loops(report: Report) -> Iterator[str]:
    for found in report.loops:
        loop, owner = found.loop, f"loop {found.loop.kind}"
        yield from _negative(owner, run_ns=loop.run_ns, busy_ns=loop.busy_ns, steps=loop.steps)
        yield from _above(owner, loop.busy_ns, loop.run_ns, "busy of its time")
        yield from _of_distribution(f"{owner}: lag", loop.beat_lag)
        yield from _of_distribution(f"{owner}: timers", loop.timer_lag)
        for function in found.functions:
            name = f"{owner}: {function.step.function.function}"
            yield from _of_distribution(name, function.step.durations)
            # The clock's rate is measured again during a step.
            yield from _above(name, function.share, 1.001, "a share of the loop's steps")
            yield from _above(name, sum(c.share for c in function.causes), 1, "of it in the driver")
        for stall in found.stalls:
            name = f"{owner}: stall of {stall.stall.function.function}"
            yield from _negative(
                name,
                total_ns=stall.stall.total_ns,
                gil_ns=stall.stall.gil_ns,
                cpu_ns=stall.stall.cpu_ns,
                delay_ns=stall.delay_ns,
                count=stall.stall.count,
            )
            yield from _above(name, stall.share, 1, "a share of all stalls")
            yield from _above(name, stall.stall.cpu_of_ns, stall.stall.total_ns, "watched of it")
            yield from _above(name, sum(c.share for c in stall.causes), 1, "of it in the driver")
            yield from _above(name, stall.stall.gc_ns, stall.stall.total_ns, "collecting garbage")
            yield from _above(name, stall.stall.max_ns, stall.stall.total_ns, "the longest of all")


def _of_spans(report: Report) -> Iterator[str]:
    for found in report.spans:
        span, owner = found.span, f"span {found.span.name!r}"
        yield from _of_distribution(owner, span.durations)
        yield from _negative(owner, database_ns=span.database_ns, cpu_ns=span.cpu_ns)
        yield from _above(owner, span.cpu_ns, span.durations.total_ns, "CPU time of all")
        yield from _above(owner, span.errors, span.count, "failed")
        yield from _above(owner, sum(span.statuses.values()), span.count, "with a status")
        if span.durations.count != span.count or span.queries.count != span.count:
            yield (
                f"{owner}: {span.count}, {span.durations.count} durations, {span.queries.count}"
                " queries"
            )
        for repeat in span.repeats:
            yield from _above(owner, repeat.spans, span.count, "with a query in a loop")
            yield from _above(owner, repeat.most, repeat.executions, "executions of one of all")
    for slow in report.slowest_spans:
        owner = f"slow span {slow.name!r}"
        yield from _negative(owner, duration_ns=slow.duration_ns, database_ns=slow.database_ns)
        for run in slow.runs:
            yield from _negative(owner, start_ns=run.start_ns, self_ns=run.self_ns, rows=run.rows)
            yield from _above(owner, run.start_ns, slow.duration_ns, "a call began after its end")


def _of_files(report: Report) -> Iterator[str]:
    profile = report.profile
    for work in profile.file_work:
        owner = f"files of {work.statement[:60]!r}"
        yield from _negative(
            owner,
            calls=work.calls,
            lock_ns=work.lock_ns,
            syncs=work.syncs,
            sync_ns=work.sync_ns,
            read_bytes=work.read_bytes,
            read_ns=work.read_ns,
            written_bytes=work.written_bytes,
            write_ns=work.write_ns,
        )
        yield from _above(owner, work.lock_waits, work.calls, "waits for a lock of calls")
        yield from _above(owner, work.max_lock_ns, work.lock_ns, "the longest wait of all")
    for hold in report.lock_holds:
        owner = f"lock of {hold.statement[:60]!r}"
        yield from _negative(owner, count=hold.count, total_ns=hold.total_ns, max_ns=hold.max_ns)
        yield from _above(owner, hold.max_ns, hold.total_ns, "the longest of all")
        yield from _above(owner, hold.database_of_ns, hold.total_ns, "known of all")
        yield from _above(owner, hold.database_ns, hold.database_of_ns, "in the driver of it")


def _of_threads(profile: Profile) -> Iterator[str]:
    killed = {process.id for process in profile.processes if not process.clean_end}
    counted = Counter(used.thread for used in profile.thread_usage)
    for thread, times in counted.items():
        if times > 1:
            yield f"thread {thread.name!r} is there {times} times"
    for used in profile.thread_usage:
        owner = f"thread {used.thread.name!r}"
        cpu_ns = used.user_ns + used.system_ns
        yield from _negative(
            owner,
            user_ns=used.user_ns,
            system_ns=used.system_ns,
            read_bytes=used.read_bytes,
            written_bytes=used.written_bytes,
        )
        plotted_ns = sum(i.cpu_ns for i in used.timeline)
        if used.thread.process_id not in killed:  # whose last second was seen only from outside
            yield from _above(owner, plotted_ns - TICKS_NS, cpu_ns, "CPU in intervals")


def _of_timeline(profile: Profile) -> Iterator[str]:
    calls = sum(a.count for a in profile.aggregates)
    timeline_figures = sum(interval.calls for interval in profile.timeline)
    if profile.timeline and timeline_figures != calls:
        yield f"the timeline has {timeline_figures} calls of {calls}"
    self_ns = sum(a.self_ns for a in profile.aggregates)
    plotted_ns = sum(interval.self_ns for interval in profile.timeline)
    yield from _above("timeline", plotted_ns, self_ns, "time")
    for moment in timeline_of(profile, INTERVALS).moments:
        yield from _negative("timeline", calls=moment.calls_per_s, busy=moment.busy)
