"""The requests that the badge lists: what each has executed, while it ran.

The recording is the tests' (`testing.meter`): its changes between the begin and the end of a
request, and of those what its own span has.
"""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, field
from itertools import count
from threading import Lock

from queryprof.analysis.baseline_figures import OTHER
from queryprof.analysis.baseline_rules import REPEATS
from queryprof.analysis.call_sites import Function, call_site, find_helpers
from queryprof.analysis.totals import self_ns_of
from queryprof.core.span import nesting, outer_span, span
from queryprof.core.wall_clock import unix_ns
from queryprof.errors import QueryprofError
from queryprof.model import Aggregate, Frame, Plan
from queryprof.operations import OWN_NOTE, STATEMENT_OPERATIONS
from queryprof.testing.meter import Block, meter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

KEPT = 200
"""Requests."""

NAMES = 128
"""Of spans, at the least: a name is used again when its request has ended."""

NO_LINES = (
    "other requests ran at the same time, and the program is recorded: the lines of this one are"
    " not known apart from theirs"
)
LATE = "work that an earlier request began executed meanwhile: lines are not known apart from its"
LONG = "it ran beside more other requests than are kept apart"
LONGEST = 500
"""So many requests may end while one runs: what is between its borders is kept until its end."""

NO_ROOM = "more different statements than are kept apart: some are not known"


@dataclass(frozen=True, slots=True)
class Line:
    """A statement at a call site in one request.

    Attributes:
        site: None: no frame of the program is known.
        note: what a library has noted of it, as the relation that it loads; "": nothing.
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
        number: from 1 on; status: None: it has none yet.
        end_unix_ns: 0: it has not ended.
        ended: how many requests have ended before it, and itself; 0: it has not.
        is_alone: whether no other request ran at the same time.
        unknown: what is not known of its queries; "": they are known.
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
    lines: tuple[Line, ...] = field(default=(), repr=False)

    @property
    def repeats(self) -> tuple[Line, ...]:
        """Statements that one line executed many times: queries in a loop."""
        return tuple(line for line in self.lines if line.executions > REPEATS)

    @property
    def worst(self) -> Line | None:
        """The line with most time in the database."""
        return max(self.lines, key=lambda line: line.self_ns, default=None)


class Running:
    """A request that runs.

    Attributes:
        is_own: whether its span has a name of the badge's.
        block: what it executes; None: it is not known.
        beside: how many others have ended since it began.
    """

    def __init__(self, request: Request, block: Block | None, own: span, is_own: bool) -> None:
        self.request, self.block, self.span, self.is_own = request, block, own, is_own
        self.beside = 0


class Requests:
    """The latest requests of this process, of all its badges."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers, self._ends = count(1), count(1)
        self._kept: deque[Request] = deque(maxlen=KEPT)  # in the order of their ends
        self._running: dict[int, Running] = {}
        self._outer: Block | None = None  # keeps the recording on between requests
        self._free = deque(f"request {number}" for number in range(1, NAMES + 1))
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_in_child)

    def _begin_in_child(self) -> None:
        """In a forked child: another thread may have had the lock, and the requests are the
        parent's.
        """
        self._lock = Lock()
        self._kept.clear()
        self._running.clear()
        nesting.is_off = False

    def begin(self, name: str, route: str) -> Running:
        """Begins a request: its span is entered in the caller's context.

        Args:
            route: the span's name in a recording of others.
        """
        with self._lock:
            request = Request(next(self._numbers), name, unix_ns(), is_alone=not self._running)
            for other in self._running.values():
                other.request.is_alone = False
            block = self._open(request)
            is_own = nesting.is_off = meter.is_own
            own = outer_span(self._name() if is_own else route)
            running = Running(request, block, own, is_own)
            self._running[request.number] = running
        running.span.__enter__()
        return running

    def _name(self) -> str:
        """The name of a span that no request has which runs; the one that was so longest."""
        if not self._free:
            self._free.append(f"request {NAMES + len(self._running) + 1}")
        return self._free.popleft()

    def end(self, running: Running, error: BaseException | None = None) -> None:
        """Ends a request; what it has executed is known from now on."""
        request = running.request
        with self._lock:
            if request.number not in self._running:
                return
            figures = running.span.figures()
            running.span.__exit__(type(error) if error else None, error, None)
            del self._running[request.number]
            nesting.is_off &= bool(self._running)  # the program's spans are its own again
            if running.block is not None:
                meter.border()
                if running.block.is_whole:
                    self._add(running, running.block, figures)
                else:
                    request.unknown = "the recording ended meanwhile"
                meter.close(running.block)
            elif request.unknown == LONG:
                request.queries, request.database_ns = figures
            for other in self._running.values():
                self._stands_beside(other)
            request.end_unix_ns = unix_ns()
            request.ended = next(self._ends)
            self._kept.append(request)

    def _stands_beside(self, other: Running) -> None:
        """Another request has ended while this one runs: a stream may run for ever."""
        other.beside += 1
        if other.beside > LONGEST and other.block is not None:
            meter.close(other.block)
            other.block, other.request.unknown = None, LONG

    def since(self, first: int, ended: int) -> list[Request]:
        """The requests from the first one on that ended after so many others, in that order."""
        return [one for one in tuple(self._kept) if one.number >= first and one.ended > ended]

    def of(self, number: int) -> Request | None:
        """One that is still kept, and has ended."""
        return next((one for one in tuple(self._kept) if one.number == number), None)

    def _open(self, request: Request) -> Block | None:
        try:
            self._outer = self._outer or meter.open(with_plans=False, keeps_parts=False)
            if not self._running:
                meter.renew()
            return meter.open()
        except QueryprofError as error:
            request.unknown = str(error)
            return None

    def _add(self, running: Running, block: Block, figures: tuple[int, int]) -> None:
        request, own = running.request, running.span.name
        everything = [one for part in block.parts for one in meter.descriptions.aggregates(part)]
        if running.is_own:
            self._free.append(own)
        elif not request.is_alone:
            request.queries, request.database_ns = figures
            request.unknown = NO_LINES
            return
        # In a recording of others the program's spans are their own.
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
        notes = {one: meter.descriptions.note(one) for one in statements}
        request.aggregates = tuple(
            one for one in request.aggregates if notes[one.statement] != OWN_NOTE
        )
        request.queries = sum(
            one.count for one in request.aggregates if one.operation in STATEMENT_OPERATIONS
        )
        request.database_ns = self_ns_of(request.aggregates)
        helpers = find_helpers(everything)
        request.lines = tuple(_lines(request.aggregates, helpers, notes))


requests = Requests()


def _lines(
    aggregates: Sequence[Aggregate], helpers: frozenset[Function], notes: Mapping[str, str]
) -> Iterable[Line]:
    found: dict[tuple[str, Frame | None], list[Aggregate]] = {}
    for one in aggregates:
        found.setdefault((one.statement, call_site(one.path, helpers).frame), []).append(one)
    for (statement, site), group in found.items():
        runs = sum(one.count for one in group if one.operation in STATEMENT_OPERATIONS)
        yield Line(statement, site, runs, self_ns_of(group), notes[statement])
