"""What is compared of whole processes."""

from __future__ import annotations

import dataclasses

import pytest
from analysis.by_hand import aggregate, profile_of

from queryprof.analysis.comparison import compare
from queryprof.analysis.comparison_result import Verdict
from queryprof.model import Profile, Thread, ThreadUsage

pytestmark = pytest.mark.once


def test_the_processor_s_time_is_compared() -> None:
    """Of all threads; where it is known of all runs."""

    def run(user_ms: int, system_ms: int) -> Profile:
        usage = ThreadUsage(
            Thread(1, "T"), user_ms * 10**6, system_ms * 10**6, 0, 0, 0, 0, 0, 0, 10**9, ()
        )
        return dataclasses.replace(profile_of(aggregate("SELECT 1")), thread_usage=(usage, usage))

    before = [run(100 + n, 50) for n in range(5)]
    (cpu,) = (
        one
        for one in compare(before, [run(300 + n, 50) for n in range(5)]).whole
        if one.metric == "cpu_ns"
    )
    assert (cpu.before, cpu.after, cpu.verdict) == (304e6, 704e6, Verdict.WORSE)
    plain = profile_of(aggregate("SELECT 1"))
    assert "cpu_ns" not in {one.metric for one in compare(before, [plain]).whole}
