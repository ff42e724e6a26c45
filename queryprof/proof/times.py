"""Keep the times of statements with and without the chosen changes, and compute the savings of a
change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from queryprof.model.advice import SLOWER
from queryprof.proof.workload import RecordedStatement

MIN_SHARE = 0.03
"""An index must save at least this share of the remaining time."""

MIN_SHARE_OF_ALL, MIN_NS = 0.005, 100_000
"""An index must save at least this share of the whole recorded time, and at least MIN_NS."""

MIN_SPEEDUP_SHARE = 0.8
"""A statement that takes more than this many times as long as before counts as equally fast."""


@dataclass(slots=True)
class StatementTimes:
    """The times of statements (ns per execution).

    Attributes:
        queries: the statements that can be measured.
        base: the times with the unchanged database.
        now: the times with the chosen changes.
    """

    queries: Sequence[RecordedStatement]
    base: dict[str, float] = field(default_factory=dict)
    now: dict[str, float] = field(default_factory=dict)

    def remaining_ns(self) -> float:
        """Return the time of the recorded statements with the chosen changes."""
        return sum(
            one.ns * self.now[one.statement] / max(self.base[one.statement], 1)
            for one in self.queries
        )

    def min_win_ns(self) -> float:
        """Return the time (ns) that a change must save to be chosen."""
        whole_ns = sum(query.ns for query in self.queries)
        return max(MIN_SHARE * self.remaining_ns(), MIN_SHARE_OF_ALL * whole_ns, MIN_NS)

    def slower(self, costs: dict[str, float]) -> list[RecordedStatement]:
        """Return the statements whose new cost is more than SLOWER times their current cost. The
        cost of an interrupted measurement is its time limit.
        """
        return [
            query
            for query in self.queries
            if costs.get(query.statement, 0.0) > SLOWER * self.now[query.statement]
        ]

    def measured_win_ns(self, costs: dict[str, float]) -> float:
        """Return the savings (ns) of new costs, computed from times measured here. Recorded times
        may come from a cold cache or a busy machine.
        """
        return sum(
            query.executions * (self.now[query.statement] - costs[query.statement])
            for query in self.queries
            if query.statement in costs
        )

    def win_ns(self, costs: dict[str, float]) -> float:
        """Return how much of the recorded time (ns) new costs save.

        Ignores statements that are hardly faster (see MIN_SPEEDUP_SHARE), and writes that are
        hardly slower.
        """
        won = 0.0
        for query in self.queries:
            now, new = self.now[query.statement], costs.get(query.statement)
            most = now / MIN_SPEEDUP_SHARE if query.writes else now
            if new is not None and not MIN_SPEEDUP_SHARE * now < new < most:
                won += self.saved_ns(query, now, new)
        return won

    def saved_ns(self, query: RecordedStatement, was_ns: float, now_ns: float) -> float:
        """Return the recorded time (ns) that a statement saves. A loss is computed from the
        measured times, because the ratio of short times is unreliable.
        """
        if now_ns > was_ns:
            return query.executions * (was_ns - now_ns)
        return query.ns * (was_ns - now_ns) / max(self.base[query.statement], 1)
