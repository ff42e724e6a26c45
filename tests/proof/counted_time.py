"""Time as counted SQLite work, so that choices by time are tested without a clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from queryprof.analysis.report import Report
from queryprof.core._core import histogram_bucket
from queryprof.findings.finding import Finding
from queryprof.model import Profile
from queryprof.model.advice import Advice
from queryprof.planner.judging import UNLIMITED_NS, Judge, Measurement
from queryprof.proof.prove import prove

EXECUTION_NS, STEP_NS, PAGE_NS, INSERTED_ENTRY_NS = 5_000.0, 20.0, 200.0, 2_000.0
"""The costs of an execution, a VM step, a page fetch, and a row inserted into a table
or an index.
"""


class CountingJudge(Judge):
    """A judge that executes and counts as usual, but returns times computed from the counts."""

    def deadline(self, left_s: float) -> None:
        """Set no deadline: the clock does not count here."""

    def measure(
        self,
        names: Sequence[str],
        sql: str,
        values: object,
        writes: bool,
        rounds: int,
        enough_ns: int,
        limit_ns: float = UNLIMITED_NS,
        most_rows: int | None = None,
    ) -> Mapping[str, Measurement]:
        counted = super().measure(names, sql, values, writes, 1, 0, UNLIMITED_NS, most_rows)
        found = {name: replace(one, ns=time_of(one)) for name, one in counted.items()}
        if any(one.ns > limit_ns for one in found.values()):
            return dict.fromkeys(names, Measurement(limit_ns, None, None, 0, ""))
        return found

    def insert_ns(
        self,
        names: Sequence[str],
        table: str,
        key: Sequence[str],
        columns: Sequence[str],
        rounds: int,
    ) -> Mapping[str, float]:
        indexes = f"SELECT count(*) FROM pragma_index_list('{table.strip(chr(34))}')"
        counts = {name: int(self.rows(name, indexes)[0][0]) for name in names}
        return {name: INSERTED_ENTRY_NS * (1 + count) for name, count in counts.items()}


def time_of(one: Measurement) -> float:
    assert one.vm_steps is not None
    assert one.page_fetches is not None
    return EXECUTION_NS + STEP_NS * one.vm_steps + PAGE_NS * one.page_fetches


NO_LIMIT_S = 3600.0
"""A budget that no machine is too slow for."""


def counted(profile: Profile) -> Profile:
    """Return a recording in which each execution took its computed cost."""
    aggregates = []
    for one in profile.aggregates:
        spent = round(
            EXECUTION_NS * one.count + STEP_NS * one.vm_steps + PAGE_NS * one.page_fetches
        )
        each = spent // max(1, one.count)
        durations = {histogram_bucket(each): one.count} if one.histogram else {}
        aggregates.append(
            one._replace(
                self_ns=spent,
                total_ns=spent,
                max_ns=each,
                execution_max_ns=each,
                histogram=durations,
            )
        )
    return replace(profile, aggregates=tuple(aggregates))


def proved(
    report: Report,
    database: str,
    findings: Sequence[Finding] = (),
    judge: type[CountingJudge] = CountingJudge,
) -> Advice:
    """Return the advice of `prove` with counted time."""

    def judge_of(_versions: Sequence[str], interpreter: str) -> Judge:
        return judge(interpreter)

    return prove(report, database, findings=findings, budget_s=NO_LIMIT_S, judge_of=judge_of)
