"""The requests that the badge lists, each with the calls made while it ran.

The calls come from the tests' meter (`testing.meter`): the changes in the recording between the
start and the end of a request, limited to the request's own span.
"""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from threading import Lock

from queryprof.analysis.baseline_rules import REPEATS
from queryprof.analysis.call_sites import Function, call_site, find_helpers
from queryprof.analysis.totals import self_ns_of
from queryprof.comparing.baseline_figures import OTHER
from queryprof.core.span import nesting, outer_span, span
from queryprof.core.wall_clock import unix_ns
from queryprof.errors import QueryprofError
from queryprof.model import Aggregate, Frame, Plan
from queryprof.operations import OWN_NOTE, STATEMENT_OPERATIONS
from queryprof.testing.meter import Block, meter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_KEPT = 200
"""Maximum number of kept requests."""

MIN_NAMES = 128
"""Minimum number of span names. A name is reused after its request has ended."""

NO_LINES = (
    "other requests ran at the same time, and the program is being recorded:"
    " this request's lines are unknown"
)
LATE = "an earlier request's work ran at the same time: this request's lines are unknown"
LONG = "too many other requests ended while this request ran"
MAX_ENDED_DURING = 500
"""Maximum number of requests that may end while one runs. The changes since the request began are
kept until its end.
"""

NO_ROOM = "too many different statements: some are unknown"


@dataclass(frozen=True, slots=True)
class StatementLine:
    """A statement at a call site in one request.

    Attributes:
        site: None if no frame of the program is known.
        note: a library's note on the statement, such as the relation that it loads; "" without one.
    """

    statement: str
    site: Frame | None
    executions: int
    self_ns: int
    note: str = ""


@dataclass(slots=True)
class Request:
    """One request.

    Attributes:
        number: counts from 1.
        status: HTTP status; None if unknown.
        end_unix_ns: 0 while it runs.
        ended: position in the order in which requests ended, from 1; 0 while it runs.
        is_alone: whether no other request ran at the same time.
        unknown: which of its queries are unknown, as a sentence; "" if none.
    """

    number: int
    name: str
    start_unix_ns: int
    end_unix_ns: int = 0
    ended: int = 0
    status: int | None = None
    is_alone: bool = True
    unknown: str = ""
    aggregates: tuple[Aggregate, ...] = ()
    plans: tuple[Plan, ...] = ()
    queries: int = 0
    database_ns: int = 0
    lines: tuple[StatementLine, ...] = field(default=(), repr=False)

    @property
    def repeats(self) -> tuple[StatementLine, ...]:
        """Statements that one line executed many times: queries in a loop."""
        return tuple(line for line in self.lines if line.executions > REPEATS)

    @property
    def slowest_line(self) -> StatementLine | None:
        """The line with the most database time."""
        return max(self.lines, key=lambda line: line.self_ns, default=None)


class RunningRequest:
    """A running request.

    Attributes:
        is_own: whether its span has one of the badge's names.
        block: its calls; None if unknown.
        beside: number of other requests that have ended since it began.
    """

    def __init__(self, request: Request, block: Block | None, own: span, is_own: bool) -> None:
        self.request, self.block, self.span, self.is_own = request, block, own, is_own
        self.beside = 0


class RecentRequests:
    """The latest requests of this process, over all badges."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers, self._ends = count(1), count(1)
        self._kept: deque[Request] = deque(maxlen=MAX_KEPT)  # in the order of their ends
        self._running: dict[int, RunningRequest] = {}
        self._outer: Block | None = None  # keeps the recording on between requests
        self._free = deque(f"request {number}" for number in range(1, MIN_NAMES + 1))
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_in_child)

    def _begin_in_child(self) -> None:
        """Reset the state in a forked child.

        Another thread may have held the lock, and the requests are the parent's.
        """
        self._lock = Lock()
        self._kept.clear()
        self._running.clear()
        nesting.is_off = False

    def begin(self, name: str, route: str) -> RunningRequest:
        """Begin a request, and enter its span in the caller's context.

        Args:
            route: name of the span, if something else records the process.
        """
        with self._lock:
            request = Request(next(self._numbers), name, unix_ns(), is_alone=not self._running)
            for other in self._running.values():
                other.request.is_alone = False
            block = self._open_block(request)
            is_own = nesting.is_off = meter.is_own
            own = outer_span(self._unused_span_name() if is_own else route)
            running = RunningRequest(request, block, own, is_own)
            self._running[request.number] = running
        running.span.__enter__()
        return running

    def _unused_span_name(self) -> str:
        """Return a span name that no running request has: the name that has been unused for the
        longest time.
        """
        if not self._free:
            self._free.append(f"request {MIN_NAMES + len(self._running) + 1}")
        return self._free.popleft()

    def end(self, running: RunningRequest, error: BaseException | None = None) -> None:
        """End a request. Its figures are then known."""
        request = running.request
        with self._lock:
            if request.number not in self._running:
                return
            figures = running.span.figures()
            running.span.__exit__(type(error) if error else None, error, None)
            del self._running[request.number]
            nesting.is_off &= bool(self._running)  # the program's spans count again
            if running.block is not None:
                meter.border()
                if running.block.is_whole:
                    self._add_statements(running, running.block, figures)
                else:
                    request.unknown = "the recording ended during this request"
                meter.close(running.block)
            elif request.unknown == LONG:
                request.queries, request.database_ns = figures
            for other in self._running.values():
                self._note_other_ended(other)
            request.end_unix_ns = unix_ns()
            request.ended = next(self._ends)
            self._kept.append(request)

    def _note_other_ended(self, running: RunningRequest) -> None:
        """Count a request that ended while this one runs. After too many, stop measuring this
        request, because a stream may run forever.
        """
        running.beside += 1
        if running.beside > MAX_ENDED_DURING and running.block is not None:
            meter.close(running.block)
            running.block, running.request.unknown = None, LONG

    def ended_since(self, first: int, ended: int) -> list[Request]:
        """Return the requests with number `first` or higher that ended after position `ended`, in
        the order of their ends.
        """
        return [one for one in tuple(self._kept) if one.number >= first and one.ended > ended]

    def by_number(self, number: int) -> Request | None:
        """Return a kept request by its number, or None."""
        return next((one for one in tuple(self._kept) if one.number == number), None)

    def _open_block(self, request: Request) -> Block | None:
        try:
            self._outer = self._outer or meter.open(with_plans=False, keeps_parts=False)
            if not self._running:
                meter.renew()
            return meter.open()
        except QueryprofError as error:
            request.unknown = str(error)
            return None

    def _add_statements(
        self, running: RunningRequest, block: Block, figures: tuple[int, int]
    ) -> None:
        request, own = running.request, running.span.name
        everything = [one for part in block.parts for one in meter.descriptions.aggregates(part)]
        if running.is_own:
            self._free.append(own)
        elif not request.is_alone:
            request.queries, request.database_ns = figures
            request.unknown = NO_LINES
            return
        # If something else records the process, the program's own spans are used.
        request.aggregates = tuple(
            one for one in everything if (one.span == own if running.is_own else one.span)
        )
        statements = {one.statement for one in request.aggregates}
        if OTHER in statements:
            request.unknown = NO_ROOM
        plans = (plan for part in block.parts for plan in meter.descriptions.plans(part))
        request.plans = tuple(plan for plan in plans if plan.statement in statements)
        began = [one for one in request.aggregates if one.operation in STATEMENT_OPERATIONS]
        request.queries = sum(one.count for one in began)
        if running.is_own and request.queries != figures[0]:
            request.queries, request.database_ns = figures
            request.aggregates, request.plans, request.unknown = (), (), LATE
            return
        notes = {one: meter.descriptions.library_note(one) for one in statements}
        request.aggregates = tuple(
            one for one in request.aggregates if notes[one.statement] != OWN_NOTE
        )
        request.queries = sum(
            one.count for one in request.aggregates if one.operation in STATEMENT_OPERATIONS
        )
        request.database_ns = self_ns_of(request.aggregates)
        helpers = find_helpers(everything)
        request.lines = tuple(_statement_lines(request.aggregates, helpers, notes))


requests = RecentRequests()


def _statement_lines(
    aggregates: Sequence[Aggregate], helpers: frozenset[Function], notes: Mapping[str, str]
) -> Iterable[StatementLine]:
    found: dict[tuple[str, Frame | None], list[Aggregate]] = {}
    for one in aggregates:
        found.setdefault((one.statement, call_site(one.path, helpers).frame), []).append(one)
    for (statement, site), group in found.items():
        runs = sum(one.count for one in group if one.operation in STATEMENT_OPERATIONS)
        yield StatementLine(statement, site, runs, self_ns_of(group), notes[statement])
