"""What statements take, as the database is and with the changes that are chosen, and what a change
wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from queryprof.model.advice import SLOWER
from queryprof.proof.workload import Query

LEAST_SHARE = 0.03
"""Of the time that is left: what wins less is not worth an index."""

LEAST_OF_ALL, LEAST_NS = 0.005, 100_000
"""Of the whole recorded time, as of a finding, and in it: what wins less is not worth an index
either."""

HARDLY = 0.8
"""A statement that takes more than this share of its time is hardly faster."""


@dataclass(slots=True)
class Times:
    """The times of statements (ns of one execution).

    Attributes:
        queries: those that can be measured.
        base: as the database is; now: with what is chosen.
    """

    queries: Sequence[Query]
    base: dict[str, float] = field(default_factory=dict)
    now: dict[str, float] = field(default_factory=dict)

    def left_ns(self) -> float:
        """What the recorded statements would take with what is chosen."""
        return sum(
            one.ns * self.now[one.statement] / max(self.base[one.statement], 1)
            for one in self.queries
        )

    def least_ns(self) -> float:
        """What a change must win."""
        whole_ns = sum(query.ns for query in self.queries)
        return max(LEAST_SHARE * self.left_ns(), LEAST_OF_ALL * whole_ns, LEAST_NS)

    def slower(self, costs: dict[str, float]) -> list[Query]:
        """The statements that are slower with new costs, which may be cut off there."""
        return [
            query
            for query in self.queries
            if costs.get(query.statement, 0.0) > SLOWER * self.now[query.statement]
        ]

    def measured_win_ns(self, costs: dict[str, float]) -> float:
        """What is won by new costs of some statements where all take as long as here: the recorded
        times of those that win may be of a cold cache, or of a busy machine.
        """
        return sum(
            query.executions * (self.now[query.statement] - costs[query.statement])
            for query in self.queries
            if query.statement in costs
        )

    def win_ns(self, costs: dict[str, float]) -> float:
        """The recorded time that is won by new costs of some statements.

        A statement that is hardly faster may be just as fast: it wins nothing. One that writes may
        lose.
        """
        won = 0.0
        for query in self.queries:
            now, new = self.now[query.statement], costs.get(query.statement)
            if new is not None and not HARDLY * now < new < now / (HARDLY if query.writes else 1):
                won += self.won_ns(query, now, new)
        return won

    def won_ns(self, query: Query, was_ns: float, now_ns: float) -> float:
        """The recorded time that a statement wins whose executions take less; more is lost as
        measured: a part of a short time is no measure of a long one.
        """
        if now_ns > was_ns:
            return query.executions * (was_ns - now_ns)
        return query.ns * (was_ns - now_ns) / max(self.base[query.statement], 1)
