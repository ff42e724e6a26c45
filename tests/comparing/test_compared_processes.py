"""Comparisons of whole processes."""

from __future__ import annotations

import dataclasses

import pytest
from analysis.by_hand import aggregate, profile_of

from queryprof.comparing.comparison import compare
from queryprof.comparing.comparison_result import MetricChange, Verdict
from queryprof.model import Profile, Thread, ThreadUsage

pytestmark = pytest.mark.once


def test_the_processor_s_time_is_compared() -> None:
    """It is the sum over all threads, compared only if it is known for all runs."""

    def run(user_ms: int, system_ms: int) -> Profile:
        usage = ThreadUsage(
            Thread(1, "T"), user_ms * 10**6, system_ms * 10**6, 0, 0, 0, 0, 0, 0, 10**9, ()
        )
        return dataclasses.replace(profile_of(aggregate("SELECT 1")), thread_usage=(usage, usage))

    before = [run(100 + n, 50) for n in range(6)]
    (cpu,) = (
        one
        for one in compare(before, [run(300 + n, 50) for n in range(6)]).whole
        if one.metric == "cpu_ns"
    )
    assert (cpu.before, cpu.after, cpu.verdict) == (305e6, 705e6, Verdict.WORSE)
    plain = profile_of(aggregate("SELECT 1"))
    assert "cpu_ns" not in {one.metric for one in compare(before, [plain]).whole}


def test_peak_memory_of_the_largest_process_is_compared() -> None:
    """A run with a killed process has no peak."""

    def run(*peaks: int | None) -> Profile:
        profile = profile_of(aggregate("SELECT 1"))
        (one,) = profile.processes
        processes = tuple(
            dataclasses.replace(one, id=n, peak_memory_bytes=peak)
            for n, peak in enumerate(peaks, start=1)
        )
        return dataclasses.replace(profile, processes=processes)

    def change(before: list[Profile], after: list[Profile]) -> MetricChange:
        (found,) = (x for x in compare(before, after).whole if x.metric == "peak_memory_bytes")
        return found

    before = [run(10**6, 10**8 + n) for n in range(6)]
    memory = change(before, [run(2 * 10**8 + n, 10**6) for n in range(6)])
    assert (memory.before, memory.after, memory.verdict) == (
        10**8 + 2.5,
        2 * 10**8 + 2.5,
        Verdict.WORSE,
    )
    assert change(before, before).verdict is Verdict.SAME
    assert change(before, [run(10**8, None)]).after is None
