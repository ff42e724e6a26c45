"""The search for indexes: built on the copy, measured, and kept when they win more than they lose.

Lazy greedy: what an index wins can only fall when others are there already, so that a candidate
whose last known win is below the best one's need not be built again (M. Minoux, Accelerated greedy
algorithms for maximizing submodular set functions, 1978).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from statistics import fmean

from queryprof.model.advice import Outweighed
from queryprof.proof.analysis import ANALYZE, Analysis
from queryprof.proof.candidates import candidates_of, of_references
from queryprof.proof.dummies import with_dummies
from queryprof.proof.index import Candidate
from queryprof.proof.inserts import Inserts
from queryprof.proof.judging import (
    AFTER,
    BEFORE,
    EMPTY,
    UNLIMITED_NS,
    Judge,
    Measured,
    StatementError,
)
from queryprof.proof.schema import DatabaseSchema
from queryprof.proof.statistics import set_statistics, statistics_of
from queryprof.proof.times import Times
from queryprof.proof.workload import Query, other_work

PLANNER_ROUNDS = 3
DISCOUNT = 0.85
"""The planner's second choice is expected to win so much of its first."""

CLOSE = 0.95
"""So much of what the next candidate may win at the most is enough."""

HOPELESS, FLOOR_NS = 2.0, 1_000_000
"""A statement that takes so many times what it takes now, and this more, is interrupted."""

MOST_INDEXES = 12
MOST_CANDIDATES = 150

ROUNDS, ENOUGH_NS = 3, 10_000_000
"""How often a statement is executed to learn what it takes, and when it is known well enough."""

LONG_NS = 20_000_000
"""Of a statement that takes longer one sample is enough while indexes are tried."""


Step = Candidate | Analysis
Team = tuple[Candidate, ...]
"""Indexes that are tried together: an OR may need one for each branch."""


class Search:
    """Looks for the changes that win most of the recorded time.

    Attributes:
        chosen: the best found so far, in the order in which they were found.
        queries: those that can be measured; reasons: why others cannot.
        statistics: those that the database has; inserts: the recorded ones, and what they lose.
    """

    def __init__(self, judge: Judge, schema: DatabaseSchema, queries: Iterable[Query]) -> None:
        self.judge, self.schema = judge, schema
        self.queries: list[Query] = []
        self.reasons: dict[str, str] = {}
        self.chosen: list[Step] = []
        self.base: dict[str, tuple[Measured, ...]] = {}
        """By statement: its samples as the database is, as far as they were measured."""
        self.times = Times(self.queries)
        self._names: dict[Step, str] = {}
        self.all_queries = tuple(queries)
        self.statistics = statistics_of(judge)
        self.inserts = Inserts(judge, schema, self.all_queries)

    def measure_all(self, *, is_sample: bool = False) -> None:
        """Measures each statement as the database, or a sample of it, is. Raises OutOfTime."""
        self.queries.clear()
        for query in self.all_queries:
            try:
                if query.samples:
                    found = self._measured_samples(query, BEFORE, UNLIMITED_NS)
                    if not is_sample and (reason := other_work(query, found)):
                        self.reasons[query.statement] = reason
                        continue
                    self.base[query.statement] = found
                    self.times.base[query.statement] = fmean(one.ns for one in found)
                    self.queries.append(query)
                elif not query.inserts_into:
                    self.reasons[query.statement] = query.reason
            except StatementError as error:
                self.reasons[query.statement] = str(error)
        self.times.now = dict(self.times.base)

    def base_ns(self, query: Query) -> float:
        """Time (ns) of one execution as the database is."""
        return self.times.base[query.statement]

    def run(self) -> None:
        """Fills `chosen`; whatever ends it, it is good. Raises OutOfTime."""
        # What was won when it was tried last (at first: what it may win), and beside how many
        # others.
        heap = [
            (-bound, sum(len(one.terms) for one in team), number, team, -1)
            for number, (team, bound) in enumerate(self._bounds().items())
        ]
        heapq.heapify(heap)
        self._try_analyze(-heap[0][0] if heap else 0.0)
        while heap and len(self.chosen) < MOST_INDEXES and -heap[0][0] >= self.times.least_ns():
            _, width, number, team, beside = heapq.heappop(heap)
            new = tuple(one for one in team if not self._is_known(one, self.chosen, len(team) > 1))
            if not new:
                continue
            costs = self._try(new)
            gain = self.times.win_ns(costs)
            loss = self.inserts.loss_ns(new) if costs else 0.0
            win = gain - loss
            is_best = beside == len(self.chosen) or not heap or win >= -CLOSE * heap[0][0]
            if is_best and win >= self.times.least_ns() and (slower := self.times.slower(costs)):
                costs |= {query.statement: self.cost(query, AFTER) for query in slower}
                gain = self.times.win_ns(costs)
                win = gain - loss
                if win < self.times.least_ns() or self.times.measured_win_ns(costs) <= 0:
                    self._outweigh(new, costs, loss)
                    win = 0.0
            if is_best and win >= self.times.least_ns():
                self.chosen += new
                self.times.now |= costs
                continue
            if gain >= self.times.least_ns() > gain - loss:
                self._outweigh(new, costs, loss)
            for one in new:
                self._drop(one)
            if win > 0 and beside != len(self.chosen):
                heapq.heappush(heap, (-win, width, number, team, len(self.chosen)))
        self._try_analyze(0.0)
        self._prune()

    def _outweigh(self, team: Team, costs: dict[str, float], loss_ns: float) -> None:
        """Keeps indexes that inserts, or other statements, speak against."""
        won = {
            query.statement: self.times.won_ns(
                query, self.times.now[query.statement], costs[query.statement]
            )
            for query in self.queries
            if query.statement in costs
        }
        slower = [query.statement for query in self.times.slower(costs)]
        wins = won
        if slower:  # what both are compared by
            wins = {
                query.statement: (
                    query.executions * (self.times.now[query.statement] - costs[query.statement])
                )
                for query in self.queries
                if query.statement in costs
            }
        self.inserts.outweigh(
            {one: self.name(one) for one in team},
            [one for one, ns in won.items() if ns > 0],
            sum(ns for ns in wins.values() if ns > 0),
            loss_ns - sum(won[one] for one in slower),
            slower,
        )

    def outweighed(self) -> tuple[Outweighed, ...]:
        """What the recorded inserts speak against, of each statement the one that wins most."""
        best: dict[str, Outweighed] = {}
        for team, found in self.inserts.outweighed:
            if not any(self._is_known(one, self.chosen) for one in team):
                for statement in found.statements:
                    known = best.get(statement)
                    if known is None or found.win_ns > known.win_ns:
                        best[statement] = found
        return tuple(dict.fromkeys(best.values()))

    def _bounds(self) -> dict[Team, float]:
        """By indexes that the planner uses for a statement, the most that they can win."""
        found: dict[Team, float] = {}
        for query in self.queries:
            first = query.samples[0]
            tried = candidates_of(first.sql, query.accesses, self.schema)
            if query.writes:
                tried += of_references(self.judge, first.sql, first.values, self.schema)
            creates = [one.sql("{}") for one in tried]
            samples = [(sample.sql, sample.values) for sample in query.samples]
            for turn, numbers in enumerate(self._planned(creates, samples) if tried else ()):
                alone = [(tried[number],) for number in numbers]
                together = tuple(tried[number] for number in numbers)
                for team in dict.fromkeys((*alone, together)):
                    found[team] = found.get(team, 0.0) + query.ns * DISCOUNT**turn
        return dict(sorted(found.items(), key=lambda one: -one[1])[:MOST_CANDIDATES])

    def _planned(
        self, creates: Sequence[str], samples: Sequence[tuple[str, object]]
    ) -> list[list[int]]:
        chosen = partial(self.judge.chosen, EMPTY, creates, samples, PLANNER_ROUNDS)
        with suppress(StatementError):
            return with_dummies(self.judge, EMPTY, chosen)
        return []

    def _is_known(self, one: Candidate, steps: Iterable[Step], is_in_team: bool = False) -> bool:
        """Whether an index is there that begins with it; in a team one of that alone may
        be needed.
        """
        return any(one.starts(other) for other in self.schema.indexes) or any(
            isinstance(other, Candidate)
            and (one == other or (one.starts(other) and not is_in_team))
            for other in steps
        )

    def name(self, one: Step) -> str:
        """What an index is called: nothing else in the database is."""
        if isinstance(one, Analysis):
            return ""
        if one not in self._names:
            taken = {*self.schema.names, *self._names.values()}
            name, number = one.name, 1
            while name in taken:
                number += 1
                name = f"{one.name}{number}"
            self._names[one] = name
        return self._names[one]

    def _try(self, team: Team) -> dict[str, float]:
        """Builds indexes, and measures the statements that use one: what each takes now."""
        names = [self.name(one) for one in team]
        try:
            for one, name in zip(team, names, strict=True):
                self._build(one, name)
        except StatementError:
            return {}
        return self._costs_with(names, {one.table for one in team})

    def _build(self, one: Candidate, name: str) -> None:
        """Makes an index on the copy; with statistics, if those of the others are kept."""
        self.judge.do(AFTER, one.sql(name))
        if ANALYZE in self.chosen:
            self.judge.do(AFTER, f'ANALYZE "{name}"')

    def _costs_with(self, indexes: Sequence[str], tables: set[str]) -> dict[str, float]:
        """What statements take on the copy, of those whose plan has one of the indexes, and of
        those that write to their tables.
        """
        return {
            query.statement: self.cost(
                query, AFTER, HOPELESS * self.times.now[query.statement] + FLOOR_NS
            )
            for query in self.queries
            if query.writes_to(tables)
            or any(names(self.plan(query, AFTER), one) for one in indexes)
        }

    def plan(self, query: Query, copy: str) -> tuple[str, ...]:
        """The plans for all samples of a statement."""
        return tuple(
            step for one in query.samples for step in self.judge.plan(copy, one.sql, one.values)
        )

    def take_back(self, step: Step) -> None:
        """Undoes a change on the copy."""
        if isinstance(step, Analysis):
            self.forget_statistics()
        else:
            self._drop(step)

    def _drop(self, one: Candidate) -> None:
        self.judge.do(AFTER, f'DROP INDEX IF EXISTS "{self.name(one)}"')

    def cost(self, query: Query, copy: str, limit_ns: float = UNLIMITED_NS) -> float:
        """Time (ns) of one execution, on average over the samples; the limit, if it is more."""
        return fmean(one.ns for one in self._measured_samples(query, copy, limit_ns))

    def _measured_samples(self, query: Query, copy: str, limit_ns: float) -> tuple[Measured, ...]:
        found: list[Measured] = []
        for number in range(len(query.samples)):
            found.append(self.measured((copy,), query, number, ROUNDS, ENOUGH_NS, limit_ns)[copy])
            if max(found[0].ns, self.times.base.get(query.statement, 0)) > LONG_NS:
                break
        return tuple(found)

    def measured(
        self,
        copies: Sequence[str],
        query: Query,
        number: int,
        rounds: int,
        enough_ns: int,
        limit_ns: float = UNLIMITED_NS,
    ) -> dict[str, Measured]:
        """One sample of a statement on copies, by turns."""
        one = query.samples[number]
        # To interrupt a write ends the transaction around it.
        most_ns = UNLIMITED_NS if query.writes else limit_ns
        return dict(
            self.judge.measure(
                copies, one.sql, one.values, query.writes, rounds, enough_ns, most_ns, one.most_rows
            )
        )

    def _try_analyze(self, bound: float) -> None:
        """ANALYZE is chosen where no index is expected to win clearly more: it costs no write
        anything.

        Statistics may be old. What indexes win instead, `_prune` sees, which tries without each
        change.
        """
        if ANALYZE in self.chosen:
            return
        before = {query.statement: self.plan(query, AFTER) for query in self.queries}
        self.judge.do(AFTER, "ANALYZE")
        costs = self._costs_of_others(before)
        win = self.times.win_ns(costs)
        if win >= self.times.least_ns() and win >= DISCOUNT * DISCOUNT * bound:
            self.chosen.append(ANALYZE)
            self.times.now |= costs
        else:
            self.forget_statistics()

    def forget_statistics(self) -> None:
        """Undoes ANALYZE: the statistics are those that the database has."""
        set_statistics(self.judge, AFTER, self.statistics)

    def _costs_of_others(self, plans: dict[str, tuple[str, ...]]) -> dict[str, float]:
        """What the statements take whose plans are others now."""
        return {
            query.statement: self.cost(query, AFTER)
            for query in self.queries
            if self.plan(query, AFTER) != plans[query.statement]
        }

    def _prune(self) -> None:
        """Takes away what the others make needless, and columns that win nothing."""
        if ANALYZE in self.chosen and len(self.chosen) > 1:
            self._prune_analyze()
        for one in [step for step in self.chosen if isinstance(step, Candidate)]:
            place, kept = self.chosen.index(one), one
            others = [step for step in self.chosen if step != one]
            # What another begins with is not made beside it, whatever it wins.
            most_ns = math.inf if self._is_known(one, others) else self.times.least_ns()
            if others and self._goes_without(one, None, most_ns):
                self.chosen.remove(one)
                continue
            while len(kept.terms) > 1 and not self._is_known(kept.shortened(), others):
                if not self._goes_without(kept, kept.shortened(), self.times.least_ns()):
                    break
                kept = self.chosen[place] = kept.shortened()

    def _prune_analyze(self) -> None:
        before = {query.statement: self.plan(query, AFTER) for query in self.queries}
        self.forget_statistics()
        costs = self._costs_of_others(before)
        if -self.times.win_ns(costs) < self.times.least_ns():
            self.chosen.remove(ANALYZE)
            self.times.now |= costs
        else:
            self.judge.do(AFTER, "ANALYZE")

    def _goes_without(self, one: Candidate, instead: Candidate | None, most_ns: float) -> bool:
        """Whether less than `most_ns` is lost without an index, or with another; if so it
        is done.
        """
        users = [query for query in self.queries if names(self.plan(query, AFTER), self.name(one))]
        self.judge.do(AFTER, "SAVEPOINT queryprof_without")
        self._drop(one)
        if instead:
            self._build(instead, self.name(instead))
        costs = {query.statement: self.cost(query, AFTER, self._worst_ns(query)) for query in users}
        is_good = -self.times.win_ns(costs) < most_ns
        if is_good:
            self.times.now |= costs
        else:
            self.judge.do(AFTER, "ROLLBACK TO queryprof_without")
        self.judge.do(AFTER, "RELEASE queryprof_without")
        return is_good

    def _worst_ns(self, query: Query) -> float:
        """From this time on a statement has lost more than a change must win."""
        base = self.times.base[query.statement]
        return (
            self.times.now[query.statement]
            + 2 * self.times.least_ns() * base / max(query.ns, 1)
            + FLOOR_NS
        )


def names(plan: Iterable[str], index: str) -> bool:
    """Whether a plan has an index."""
    return bool(index) and any(f" {index} " in f"{step} " for step in plan)
