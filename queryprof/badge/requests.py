"""The requests that the badge lists: what each has executed, while it ran.

The recording is the tests' (`testing.meter`): its changes between the begin and the end of a
request, and of those what its own span has, when another one ran at the same time.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import count
from threading import Lock
from time import time_ns

from queryprof.analysis.baseline_rules import REPEATS
from queryprof.analysis.call_sites import Function, call_site, find_helpers
from queryprof.analysis.totals import self_ns_of
from queryprof.core.span import span
from queryprof.errors import QueryprofError
from queryprof.model import Aggregate, Frame, Plan
from queryprof.operations import STATEMENT_OPERATIONS
from queryprof.testing.meter import Block, meter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

KEPT = 200
"""Requests."""

RENEWED_AFTER = 500
"""Requests in one recording, which has names for some thousands of spans."""


@dataclass(frozen=True, slots=True)
class Line:
    """A statement at a call site in one request.

    Attributes:
        site: None: no frame of the program is known.
    """

    statement: str
    site: Frame | None
    executions: int
    self_ns: int


@dataclass(slots=True)
class Request:
    """One request.

    Attributes:
        number: from 1 on; status: None: it has none yet.
        end_unix_ns: 0: it has not ended.
        is_alone: whether no other request ran at the same time: then what threads of the program's
            own executed is here, too.
        unknown: why nothing is known of its queries; "": it is known.
    """

    number: int
    name: str
    start_unix_ns: int
    end_unix_ns: int = 0
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
    """A request that runs."""

    def __init__(self, request: Request, block: Block | None, own: span) -> None:
        self.request, self.block, self.span = request, block, own


class Requests:
    """The latest requests of this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers = count(1)
        self._kept: deque[Request] = deque(maxlen=KEPT)
        self._running: set[int] = set()
        self._outer: Block | None = None  # keeps the recording on between requests
        self._in_recording = 0

    def begin(self, name: str, route: str) -> Running:
        """Begins a request: its span is entered in the caller's context.

        Args:
            route: the span's name in a recording of others.
        """
        with self._lock:
            number = next(self._numbers)
            request = Request(number, name, time_ns(), is_alone=not self._running)
            for other in self._kept:
                if other.number in self._running:
                    other.is_alone = False
            block = self._open(request)
            self._kept.append(request)
            self._running.add(number)
        own = span(f"{name} #{number}" if meter.is_own else route)
        own.__enter__()
        return Running(request, block, own)

    def end(self, running: Running, error: BaseException | None = None) -> None:
        """Ends a request; what it has executed is known from now on."""
        request = running.request
        with self._lock:
            if request.number not in self._running:
                return
            running.span.__exit__(type(error) if error else None, error, None)
            self._running.discard(request.number)
            if running.block is not None:
                meter.border()
                if running.block.is_whole:
                    self._add(running, running.block)
                else:
                    request.unknown = "the recording ended meanwhile"
                meter.close(running.block)
            request.end_unix_ns = time_ns()

    def since(self, number: int) -> list[Request]:
        """The requests after this one that have ended."""
        return [one for one in tuple(self._kept) if one.number > number and one.end_unix_ns]

    def of(self, number: int) -> Request | None:
        """One that is still kept, and has ended."""
        return next((one for one in self.since(number - 1) if one.number == number), None)

    def _open(self, request: Request) -> Block | None:
        if self._in_recording >= RENEWED_AFTER and not self._running and self._outer:
            meter.close(self._outer)
            self._outer, self._in_recording = None, 0
        try:
            self._outer = self._outer or meter.open(with_plans=False, keeps_parts=False)
            self._in_recording += 1
            return meter.open()
        except QueryprofError as error:
            request.unknown = str(error)
            return None

    @staticmethod
    def _add(running: Running, block: Block) -> None:
        request, own = running.request, running.span.name
        everything = [one for part in block.parts for one in meter.descriptions.aggregates(part)]
        request.aggregates = tuple(
            one for one in everything if one.span == own or (request.is_alone and one.span)
        )
        statements = {one.statement for one in request.aggregates}
        plans = (plan for part in block.parts for plan in meter.descriptions.plans(part))
        request.plans = tuple(plan for plan in plans if plan.statement in statements)
        asked = [one for one in request.aggregates if one.operation in STATEMENT_OPERATIONS]
        request.queries = sum(one.count for one in asked)
        request.database_ns = self_ns_of(request.aggregates)
        request.lines = tuple(_lines(request.aggregates, find_helpers(everything)))


def _lines(aggregates: Sequence[Aggregate], helpers: frozenset[Function]) -> Iterable[Line]:
    found: dict[tuple[str, Frame | None], list[Aggregate]] = {}
    for one in aggregates:
        found.setdefault((one.statement, call_site(one.path, helpers).frame), []).append(one)
    for (statement, site), group in found.items():
        runs = sum(one.count for one in group if one.operation in STATEMENT_OPERATIONS)
        yield Line(statement, site, runs, self_ns_of(group))
