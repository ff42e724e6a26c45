"""The program as the rules see it: the recorded data, and methods that make findings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.library_frames import THREAD_HANDOFF_DRIVERS
from queryprof.findings.finding import (
    LINE_CATEGORIES,
    MIN_NS,
    MIN_SHARE,
    NO_SHARE,
    Finding,
    Severity,
    least_severe,
    severity_of_gain,
)
from queryprof.findings.groups import StatementGroup
from queryprof.findings.libraries import ONE_QUERY, is_table_of_class
from queryprof.findings.shared_lines import SharedLines
from queryprof.findings.side_by_side import IN_BACKGROUND, longest_gain_ns
from queryprof.findings.whole import RUN, SPANS, run_union_ns
from queryprof.sql.clauses import first_table


@dataclass(frozen=True)
class Program(SharedLines):
    """The recorded data, with methods that make findings."""

    def make_finding(
        self,
        category: str,
        group: StatementGroup,
        gain_ns: float,
        evidence: tuple[str, ...],
        fix: str,
        loop: CallSite | None = None,
        code: str = "",
        doubt: str = "",
        most: Severity = Severity.HIGH,
    ) -> Finding | None:
        """Return a finding about a group; None if the gain is too small.

        Args:
            most: the highest severity that the finding may get.
        """
        gain_ns /= self._concurrent_processes(group)
        is_awaited = self.timed_library(group.statement) in THREAD_HANDOFF_DRIVERS
        longest_ns = longest_gain_ns(group, self.profile, is_awaited)
        if longest_ns < inf:
            doubt, most = doubt or IN_BACKGROUND, least_severe(most, Severity.MEDIUM)
        found = self.make_finding_at_site(
            category,
            group.statement,
            group.site,
            min(gain_ns, longest_ns),
            evidence,
            fix,
            loop,
            code,
            doubt,
            most,
            self.reference_time(group),
        )
        is_timed = group.line_ns is not None or category not in LINE_CATEGORIES
        is_least = not is_timed and self.timed_library(group.statement) in ONE_QUERY
        is_least = is_least or (group.overlaps and category in LINE_CATEGORIES)
        return replace(found, is_least=True) if found and is_least else found

    def reference_time(self, group: StatementGroup) -> tuple[int, str]:
        """Return the total time (100%) for a group's shares, and the name of this time."""
        spans_ns = self._spans_ns
        # Parallel requests can wait for more than the run's time in total.
        if spans_ns and group.handed_ns > group.steady_ns:
            return spans_ns, SPANS
        if spans_ns and all(not member.span for member in group.members):
            # If no request waits for the group, its time is a part of the run.
            return max((one.wall_ns for one in self.profile.processes), default=0), RUN
        return self.run_ns, self.whole

    def reads_class(self, group: StatementGroup, name: str) -> bool:
        """Return whether a query reads the table of a class of an object mapper, as far as the
        source or the name of the class shows.
        """
        if not name:
            return False
        table = first_table(group.statement)
        named = self.lines.table_of_class(name)
        return table == named.lower() if named else is_table_of_class(table, name)

    def share_of(self, group: StatementGroup, ns: float) -> float:
        whole_ns, _ = self.reference_time(group)
        return ns / self._concurrent_processes(group) / whole_ns if whole_ns else 0.0

    def _concurrent_processes(self, group: StatementGroup) -> float:
        """Return how many processes execute a group at the same time. The result is 1 if the
        group's share does not refer to the run, and for writes of SQLite, for which processes take
        turns.
        """
        is_one = len(group.process_ids) < 2 or self.reference_time(group)[1] != RUN
        is_sqlite = self.profile.systems.get(group.statement, "sqlite") == "sqlite"
        if is_one or (is_sqlite and not group.reads):
            return 1.0
        ids = group.process_ids
        together = run_union_ns(self.profile, ids)
        walls_ns = sum(one.wall_ns for one in self.profile.processes if one.id in ids)
        return max(1.0, walls_ns / together) if together else 1.0

    def make_finding_at_site(
        self,
        category: str,
        statement: str,
        site: CallSite,
        gain_ns: float,
        evidence: tuple[str, ...],
        fix: str,
        loop: CallSite | None = None,
        code: str = "",
        doubt: str = "",
        most: Severity = Severity.HIGH,
        whole: tuple[int, str] | None = None,
    ) -> Finding | None:
        """Return a finding about any statement and call site; None if the gain is too small.

        Args:
            whole: the time that the share refers to, and the name of that time; None for the
                default.
        """
        is_of_all = whole is None or whole[0] == self.run_ns
        whole_ns, name = whole or (self.run_ns, self.whole)
        most_ns = whole_ns if name == RUN or not is_of_all else self.profile.process_ns
        gain_ns = min(gain_ns, most_ns or gain_ns)
        share = gain_ns / whole_ns if whole_ns else 0.0
        if share < NO_SHARE or (share < MIN_SHARE and gain_ns < MIN_NS):
            return None
        span_ns = gain_ns / self.spans if self.spans else 0.0
        severity = least_severe(severity_of_gain(share, span_ns, not doubt, gain_ns), most)
        return Finding(
            category,
            severity,
            min(share, 1.0),
            round(gain_ns),
            statement,
            site,
            loop,
            evidence,
            fix,
            code,
            doubt,
            whole=name,
        )
