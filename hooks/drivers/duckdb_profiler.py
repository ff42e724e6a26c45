"""DuckDB's profiler, where the settings want it: the operators of each execution.

The profiler is switched on in each connection that the program uses, by the program's first
execution in it, and off at the end of the recording, or before the program sets it. A profile is
read when an execution has ended; of one whose rows the program does not read to the end, before the
next one. This takes no time of the calls that are measured.
"""

from __future__ import annotations

import os
from weakref import ref

from queryprof.core import _core
from queryprof.hooks.drivers.driver import find
from queryprof.hooks.drivers.duckdb_profile import is_off, profile_of
from queryprof.hooks.drivers.pep249 import DUCKDB, DUCKDB_QUERIES
from queryprof.hooks.replacing import Replacements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, TypeVar

    Result = TypeVar("Result")

SWITCH_ON = "PRAGMA enable_profiling='no_output'"
"""Nothing is printed."""

SETTINGS = ("enable_profiling", "disable_profiling", "profiling_", "tracked_metrics")
"""What stands in a text that sets the profiler, in one way or another."""

EXECUTES = ("execute", "executemany")
ENDS = (*EXECUTES, "close", "__exit__")
"""What ends the execution before: rows that were not read are lost."""

SETTERS = ("enable_profiling", "disable_profiling")
DIRECTORY = os.path.dirname(__file__)
READS_SOME = ("fetchone", "fetchmany", "__next__")
"""Fetches that are the last ones where they return nothing."""


class Call:
    """A call that is in progress, as long as it lives."""

    __slots__ = ("__weakref__",)


class Watched:
    """A connection of the program.

    Attributes:
        is_ours: whether its profiler was switched on here.
        is_the_programs: whether the program has set it since: it stays as it is.
        sql: what it was last given to execute.
        seen: of the last profile that was read: a hash.
    """

    def __init__(self) -> None:
        self.is_ours = self.is_the_programs = False
        self.sql, self.seen = "", 0
        self._calls: list[ref[Call]] = []

    def begin(self) -> Call:
        """Begins a call of it. The core holds it: it ends whatever a signal's handler raises."""
        call = Call()
        self._calls = [*filter(_lives, self._calls), ref(call)]
        return call

    @property
    def is_busy(self) -> bool:
        """Whether a call of it is in progress."""
        return any(map(_lives, self._calls))


def _lives(call: ref[Call]) -> bool:
    return call() is not None


class Profiler:
    """Reads DuckDB's profiles of the program's executions.

    It calls the driver's own functions, which are not measured, and keeps no connection alive.
    """

    def __init__(self, module: ModuleType, connection: Any) -> None:
        self._execute = vars(connection)["execute"]
        self._information = vars(connection)["get_profiling_information"]
        self._disable = vars(connection)["disable_profiling"]
        self._statements = vars(connection)["extract_statements"]
        self._error: type[Exception] = module.Error
        self._default: Callable[[], object] = module.default_connection
        self._held: object = None  # the module's connection: its objects are made for each call
        self._type = connection
        self._watched: dict[int, tuple[ref[Any], Watched]] = {}
        self._replacements = Replacements()

    def attach(self, module: ModuleType) -> None:
        """Watches the calls that are measured; the probes are there already."""
        for owner_name, methods in (*DUCKDB.types.items(), ("", DUCKDB.functions)):
            owner = find(module, owner_name) if owner_name else module
            for name in (*methods, *SETTERS):
                probe = vars(owner).get(name)
                if probe is not None and name != "connect":  # that has no connection yet
                    watch = self._watch(name, is_function=not owner_name)
                    self._replacements.measure(owner, name, _core.watched_call(probe, watch))

    def detach(self) -> None:
        """Puts everything back, reads the last profiles, and switches the profiler off."""
        self._replacements.undo()
        for connection, watched in self._living():
            if not watched.is_busy:  # else it would wait for another thread's execution
                self._guarded(self._end, connection, watched)
        self._watched.clear()
        self._held = None

    def _watch(self, name: str, is_function: bool) -> Callable[..., Call | None]:
        """What is called before and after each call of a method, or of a function."""
        executes, ends, reads_some = name in EXECUTES, name in ENDS, name in READS_SOME
        begins = executes or name in DUCKDB_QUERIES

        def look(
            is_over: bool, first: Any, second: Any, query: Any, chosen: Any, result: object
        ) -> Watched | None:
            if is_function:
                connection = self._default_one() if chosen is None else chosen
                argument = first
            else:  # a relation knows its connection
                connection, argument = getattr(first, "_con", first), second
            watched = self._of(connection, begins and not is_over)
            if watched is None:
                return None
            if is_over:
                if not (reads_some and result):
                    self._read(connection, watched, False)
                return None
            if begins or ends:
                self._read(connection, watched, ends)
            if name in SETTERS:
                self._leave(connection, watched)
            elif begins:
                given = query if argument is None else argument
                text = getattr(given, "query", given)  # a statement has its text
                self._begin(connection, watched, text if isinstance(text, str) else "", executes)
            return watched

        def watch(*call: Any) -> Call | None:
            watched = self._guarded(look, *call)
            return watched.begin() if watched else None

        return watch

    def _default_one(self) -> object:
        self._held = self._default()
        return self._held

    def _begin(self, connection: Any, watched: Watched, text: str, executes: bool) -> None:
        """Before the program executes a text, which ends what is executed, or makes a relation."""
        watched.sql = text if executes else ""
        if any(one in text.lower() for one in SETTINGS):
            self._leave(connection, watched)
        elif not (watched.is_ours or watched.is_the_programs):
            # A text that is none ends nothing that is executed.
            ends = executes and bool(self._statements(connection, text))
            if ends or connection.description is None:
                self._switch_on(connection, watched)

    def _of(self, connection: Any, is_new: bool) -> Watched | None:
        """The connection's record, which is made if it is wanted; None: there is none."""
        found = self._watched.get(id(connection))
        if found and found[0]() is connection:
            return found[1]
        if not is_new or not isinstance(connection, self._type):
            return None
        key, watched = id(connection), Watched()
        gone = lambda _: self._watched.pop(key, None)  # noqa: E731 of this connection
        self._watched[key] = (ref(connection, gone), watched)
        return watched

    def _living(self) -> list[tuple[Any, Watched]]:
        found = [(reference(), watched) for reference, watched in self._watched.values()]
        return [one for one in found if one[0] is not None]

    def _guarded(self, function: Callable[..., Result], *arguments: object) -> Result | None:
        """Calls a function; what goes wrong in it is not the program's, but for what its signals'
        handlers raise: DuckDB makes a RuntimeError of that.
        """
        try:
            return function(*arguments)
        except self._error:
            return None
        except Exception as error:
            if type(error) is RuntimeError or not _is_own(error):
                raise
            return None

    def _switch_on(self, connection: Any, watched: Watched) -> None:
        """Switches the profiler on, where the program has not."""
        if not is_off(self._information(connection)):
            watched.is_the_programs = True
            return
        watched.is_ours = True
        self._execute(connection, SWITCH_ON)

    def _switch_off(self, connection: Any, watched: Watched) -> None:
        if watched.is_ours:
            self._disable(connection)
        watched.is_ours = False

    def _leave(self, connection: Any, watched: Watched) -> None:
        """The program sets the profiler itself: from now on it is the program's."""
        self._switch_off(connection, watched)
        watched.is_the_programs = True

    def _end(self, connection: Any, watched: Watched) -> None:
        try:
            self._read(connection, watched, True)
        finally:
            self._switch_off(connection, watched)

    def _read(self, connection: Any, watched: Watched, is_over: bool) -> None:
        """Reads the last execution's profile, once; `is_over`: also if it has not ended."""
        text = self._information(connection)
        if hash(text) == watched.seen:
            return
        profile = profile_of(text)
        if profile and (profile.sql or is_over):
            watched.seen = hash(text)
            # The profile names one statement of the text; another is a relation's.
            sql = watched.sql if profile.sql.strip() in watched.sql else profile.sql
            _core.count_operators(sql, bool(profile.sql), profile.plan, profile.operators)


def _is_own(error: BaseException) -> bool:
    """Whether an exception was raised here, and not by what a signal has had called meanwhile."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step is not None and step.tb_frame.f_code.co_filename.startswith(DIRECTORY)
