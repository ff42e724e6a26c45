"""Search for indexes: build candidates on a copy, measure, and keep indexes that are worth their
cost.

The search is lazy greedy. An index can only save less once other indexes exist. So a candidate need
not be built again if its last known savings are below another candidate's current savings (M.
Minoux, Accelerated greedy algorithms for maximizing submodular set functions, 1978).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from statistics import fmean

from queryprof.model.advice import OutweighedIndexes
from queryprof.planner.dummies import run_with_dummies
from queryprof.planner.judging import (
    AFTER,
    BEFORE,
    EMPTY,
    UNLIMITED_NS,
    Judge,
    Measurement,
    StatementError,
    is_same_work,
)
from queryprof.planner.statistics import read_statistics, set_statistics
from queryprof.proof.analyze_change import ANALYZE, AnalyzeChange
from queryprof.proof.candidates import candidate_indexes, foreign_key_candidates
from queryprof.proof.index import Candidate, has_index
from queryprof.proof.inserts import RecordedInserts
from queryprof.proof.schema import DatabaseSchema
from queryprof.proof.times import StatementTimes
from queryprof.proof.workload import RecordedStatement, unrepresentative_reason

PLANNER_ROUNDS = 3
DISCOUNT = 0.85
"""The expected savings of the planner's second choice, as a share of its first choice's savings."""

CLOSE = 0.95
"""A candidate is chosen if it saves at least this share of the next candidate's upper bound."""

TIMEOUT_FACTOR, FLOOR_NS = 2.0, 1_000_000
"""A measurement is interrupted after TIMEOUT_FACTOR times the current time plus FLOOR_NS."""

MAX_INDEXES = 12
MAX_CANDIDATES = 150

ROUNDS, ENOUGH_NS = 3, 10_000_000
"""The maximum number of executions of a measurement, and the time (ns) after which it ends."""

LONG_NS = 20_000_000
"""If a statement takes longer than this (ns), the search measures only one sample."""


Step = Candidate | AnalyzeChange
IndexSet = tuple[Candidate, ...]
"""Indexes to try together, because an OR may need an index for each branch."""


class ChangeSearch:
    """Search for the changes that save most of the recorded time.

    Attributes:
        chosen: the best changes so far, in the order of their discovery.
        queries: the statements that can be measured. reasons: why others cannot be measured.
        statistics: the rows of sqlite_stat1. inserts: the recorded inserts, and their losses.
    """

    def __init__(
        self, judge: Judge, schema: DatabaseSchema, queries: Iterable[RecordedStatement]
    ) -> None:
        self.judge, self.schema = judge, schema
        self.queries: list[RecordedStatement] = []
        self.reasons: dict[str, str] = {}
        self.chosen: list[Step] = []
        self.base: dict[str, tuple[Measurement, ...]] = {}  # with the unchanged database
        self.times = StatementTimes(self.queries)
        self._names: dict[Step, str] = {}
        self.all_queries = tuple(queries)
        self.statistics = read_statistics(judge)
        self.inserts = RecordedInserts(judge, schema, self.all_queries)

    def measure_all(self, *, is_sample: bool = False) -> None:
        """Measure each statement on the unchanged database or its sample. Raises OutOfTime."""
        self.queries.clear()
        for query in self.all_queries:
            try:
                if query.samples:
                    found = self._measured_samples(query, BEFORE, UNLIMITED_NS)
                    if not is_sample and (reason := unrepresentative_reason(query, found)):
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

    def base_ns(self, query: RecordedStatement) -> float:
        """Return the time (ns) of one execution with the unchanged database."""
        return self.times.base[query.statement]

    def run(self) -> None:
        """Search, and fill `chosen`, which is valid even after an exception. Raises OutOfTime."""
        # Each entry has the savings at its last trial (at first an upper bound), and the number of
        # chosen changes at that trial.
        heap = [
            (-bound, sum(len(one.terms) for one in team), number, team, -1)
            for number, (team, bound) in enumerate(self._indexes_with_bounds().items())
        ]
        heapq.heapify(heap)
        self._try_analyze(-heap[0][0] if heap else 0.0)
        while heap and len(self.chosen) < MAX_INDEXES and -heap[0][0] >= self.times.min_win_ns():
            _, width, number, team, beside = heapq.heappop(heap)
            new = tuple(one for one in team if not self._is_prefix(one, self.chosen, len(team) > 1))
            if not new:
                continue
            costs = self._try_team(new)
            gain = self.times.win_ns(costs)
            loss = self.inserts.loss_ns(new) if costs else 0.0
            win = gain - loss
            is_best = beside == len(self.chosen) or not heap or win >= -CLOSE * heap[0][0]
            if is_best and win >= self.times.min_win_ns() and (slower := self.times.slower(costs)):
                costs |= {query.statement: self.cost(query, AFTER) for query in slower}
                gain = self.times.win_ns(costs)
                win = gain - loss
                if win < self.times.min_win_ns() or self.times.measured_win_ns(costs) <= 0:
                    self._store_outweighed(new, costs, loss)
                    win = 0.0
            if is_best and win >= self.times.min_win_ns():
                self.chosen += new
                self.times.now |= costs
                continue
            if gain >= self.times.min_win_ns() > gain - loss:
                self._store_outweighed(new, costs, loss)
            for one in new:
                self._drop_index(one)
            if win > 0 and beside != len(self.chosen):
                heapq.heappush(heap, (-win, width, number, team, len(self.chosen)))
        self._try_analyze(0.0)
        self._remove_useless()

    def _store_outweighed(self, team: IndexSet, costs: dict[str, float], loss_ns: float) -> None:
        """Store indexes that cost inserts or other statements more than they save."""
        won = {
            query.statement: self.times.saved_ns(
                query, self.times.now[query.statement], costs[query.statement]
            )
            for query in self.queries
            if query.statement in costs
        }
        slower = [query.statement for query in self.times.slower(costs)]
        wins = won
        if slower:  # compute savings and losses from measured times, so that they are comparable
            wins = {
                query.statement: (
                    query.executions * (self.times.now[query.statement] - costs[query.statement])
                )
                for query in self.queries
                if query.statement in costs
            }
        self.inserts.store_outweighed(
            {one: self.name(one) for one in team},
            [one for one, ns in won.items() if ns > 0],
            sum(ns for ns in wins.values() if ns > 0),
            loss_ns - sum(won[one] for one in slower),
            slower,
        )

    def outweighed(self) -> tuple[OutweighedIndexes, ...]:
        """For each statement, return the outweighed indexes that would save most."""
        best: dict[str, OutweighedIndexes] = {}
        for team, found in self.inserts.outweighed:
            if not any(self._is_prefix(one, self.chosen) for one in team):
                for statement in found.statements:
                    known = best.get(statement)
                    if known is None or found.win_ns > known.win_ns:
                        best[statement] = found
        return tuple(dict.fromkeys(best.values()))

    def _indexes_with_bounds(self) -> dict[IndexSet, float]:
        """Return the planner's chosen indexes, each with an upper bound of its savings (ns)."""
        found: dict[IndexSet, float] = {}
        for query in self.queries:
            first = query.samples[0]
            tried = candidate_indexes(first.sql, query.accesses, self.schema)
            if query.writes:
                tried += foreign_key_candidates(self.judge, first.sql, first.values, self.schema)
            creates = [one.sql("{}") for one in tried]
            samples = [(sample.sql, sample.values) for sample in query.samples]
            for turn, numbers in enumerate(self._used_indexes(creates, samples) if tried else ()):
                alone = [(tried[number],) for number in numbers]
                together = tuple(tried[number] for number in numbers)
                for team in dict.fromkeys((*alone, together)):
                    found[team] = found.get(team, 0.0) + query.ns * DISCOUNT**turn
        return dict(sorted(found.items(), key=lambda one: -one[1])[:MAX_CANDIDATES])

    def _used_indexes(
        self, creates: Sequence[str], samples: Sequence[tuple[str, object]]
    ) -> list[list[int]]:
        chosen = partial(self.judge.used_indexes, EMPTY, creates, samples, PLANNER_ROUNDS)
        with suppress(StatementError):
            return run_with_dummies(self.judge, EMPTY, chosen)
        return []

    def _is_prefix(self, one: Candidate, steps: Iterable[Step], is_in_team: bool = False) -> bool:
        """Return whether an existing index, or an index of `steps`, begins with the same columns. A
        team may still need an index on exactly these columns.
        """
        return any(one.is_prefix_of(other) for other in self.schema.indexes) or any(
            isinstance(other, Candidate)
            and (one == other or (one.is_prefix_of(other) and not is_in_team))
            for other in steps
        )

    def name(self, one: Step) -> str:
        """Return a name for an index that is unused in the database."""
        if isinstance(one, AnalyzeChange):
            return ""
        if one not in self._names:
            taken = {*self.schema.names, *self._names.values()}
            name, number = one.name, 1
            while name in taken:
                number += 1
                name = f"{one.name}{number}"
            self._names[one] = name
        return self._names[one]

    def _try_team(self, team: IndexSet) -> dict[str, float]:
        """Build indexes, and return the new times (ns) of the statements that use them."""
        names = [self.name(one) for one in team]
        try:
            for one, name in zip(team, names, strict=True):
                self._build_index(one, name)
        except StatementError:
            return {}
        return self._costs_with(names, {one.table for one in team})

    def _build_index(self, one: Candidate, name: str) -> None:
        """Build an index on the copy, with statistics if ANALYZE was chosen."""
        self.judge.execute(AFTER, one.sql(name))
        if ANALYZE in self.chosen:
            self.judge.execute(AFTER, f'ANALYZE "{name}"')

    def _costs_with(self, indexes: Sequence[str], tables: set[str]) -> dict[str, float]:
        """Measure the statements whose plans use one of the indexes, and the writes to their
        tables. Return their times (ns) on the copy.
        """
        return {
            query.statement: self.cost(
                query, AFTER, TIMEOUT_FACTOR * self.times.now[query.statement] + FLOOR_NS
            )
            for query in self.queries
            if query.is_write_using(tables)
            or any(has_index(self.plan(query, AFTER), one) for one in indexes)
        }

    def plan(self, query: RecordedStatement, copy: str) -> tuple[str, ...]:
        """Return the plans for all samples of a statement."""
        return tuple(
            step for one in query.samples for step in self.judge.plan(copy, one.sql, one.values)
        )

    def undo_change(self, step: Step) -> None:
        """Undo a change on the copy."""
        if isinstance(step, AnalyzeChange):
            self.forget_statistics()
        else:
            self._drop_index(step)

    def _drop_index(self, one: Candidate) -> None:
        self.judge.execute(AFTER, f'DROP INDEX IF EXISTS "{self.name(one)}"')

    def cost(self, query: RecordedStatement, copy: str, limit_ns: float = UNLIMITED_NS) -> float:
        """Return the mean time (ns) of one execution; a sample counts at most `limit_ns`."""
        found = self._measured_samples(query, copy, limit_ns)
        if query.writes and is_same_work(found, self.base.get(query.statement, ())):
            return self.base_ns(query)  # the difference in time is noise
        return fmean(one.ns for one in found)

    def _measured_samples(
        self, query: RecordedStatement, copy: str, limit_ns: float
    ) -> tuple[Measurement, ...]:
        found: list[Measurement] = []
        for number in range(len(query.samples)):
            found.append(self.measured((copy,), query, number, ROUNDS, ENOUGH_NS, limit_ns)[copy])
            if max(found[0].ns, self.times.base.get(query.statement, 0)) > LONG_NS:
                break
        return tuple(found)

    def measured(
        self,
        copies: Sequence[str],
        query: RecordedStatement,
        number: int,
        rounds: int,
        enough_ns: int,
        limit_ns: float = UNLIMITED_NS,
    ) -> dict[str, Measurement]:
        """Measure one sample of a statement on several copies by turns."""
        one = query.samples[number]
        # Interrupting a write ends the transaction around it.
        most_ns = UNLIMITED_NS if query.writes else limit_ns
        return dict(
            self.judge.measure(
                copies, one.sql, one.values, query.writes, rounds, enough_ns, most_ns, one.most_rows
            )
        )

    def _try_analyze(self, bound: float) -> None:
        """Choose ANALYZE, which slows down no writes, unless an index may save clearly more.

        If an index later makes it unnecessary, `_remove_useless` removes ANALYZE again.
        """
        if ANALYZE in self.chosen:
            return
        before = {query.statement: self.plan(query, AFTER) for query in self.queries}
        self.judge.execute(AFTER, "ANALYZE")
        costs = self._costs_of_others(before)
        win = self.times.win_ns(costs)
        if win >= self.times.min_win_ns() and win >= DISCOUNT * DISCOUNT * bound:
            self.chosen.append(ANALYZE)
            self.times.now |= costs
        else:
            self.forget_statistics()

    def forget_statistics(self) -> None:
        """Undo ANALYZE: restore the statistics of the database."""
        set_statistics(self.judge, AFTER, self.statistics)

    def _costs_of_others(self, plans: dict[str, tuple[str, ...]]) -> dict[str, float]:
        """Return the times of statements whose plans have changed."""
        return {
            query.statement: self.cost(query, AFTER)
            for query in self.queries
            if self.plan(query, AFTER) != plans[query.statement]
        }

    def _remove_useless(self) -> None:
        """Remove changes that other changes make useless, and index columns that save nothing."""
        if ANALYZE in self.chosen and len(self.chosen) > 1:
            self._prune_analyze()
        for one in [step for step in self.chosen if isinstance(step, Candidate)]:
            place, kept = self.chosen.index(one), one
            others = [step for step in self.chosen if step != one]
            # An index that is a prefix of another index is not needed, whatever it saves.
            most_ns = math.inf if self._is_prefix(one, others) else self.times.min_win_ns()
            if others and self._can_spare(one, None, most_ns):
                self.chosen.remove(one)
                continue
            while len(kept.terms) > 1 and not self._is_prefix(kept.without_last_column(), others):
                if not self._can_spare(kept, kept.without_last_column(), self.times.min_win_ns()):
                    break
                kept = self.chosen[place] = kept.without_last_column()

    def _prune_analyze(self) -> None:
        before = {query.statement: self.plan(query, AFTER) for query in self.queries}
        self.forget_statistics()
        costs = self._costs_of_others(before)
        if -self.times.win_ns(costs) < self.times.min_win_ns():
            self.chosen.remove(ANALYZE)
            self.times.now |= costs
        else:
            self.judge.execute(AFTER, "ANALYZE")

    def _can_spare(self, one: Candidate, instead: Candidate | None, most_ns: float) -> bool:
        """Drop an index, or replace it by `instead`. If this loses less than `most_ns`, keep the
        change and return True. Otherwise undo the change and return False.
        """
        users = [
            query for query in self.queries if has_index(self.plan(query, AFTER), self.name(one))
        ]
        self.judge.execute(AFTER, "SAVEPOINT queryprof_without")
        self._drop_index(one)
        if instead:
            self._build_index(instead, self.name(instead))
        costs = {query.statement: self.cost(query, AFTER, self._worst_ns(query)) for query in users}
        is_good = -self.times.win_ns(costs) < most_ns
        if is_good:
            self.times.now |= costs
        else:
            self.judge.execute(AFTER, "ROLLBACK TO queryprof_without")
        self.judge.execute(AFTER, "RELEASE queryprof_without")
        return is_good

    def _worst_ns(self, query: RecordedStatement) -> float:
        """Return the time limit (ns) of a measurement: a slower statement loses too much anyway."""
        base = self.times.base[query.statement]
        return (
            self.times.now[query.statement]
            + 2 * self.times.min_win_ns() * base / max(query.ns, 1)
            + FLOOR_NS
        )
