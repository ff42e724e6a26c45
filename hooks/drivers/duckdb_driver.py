"""DuckDB, and its profiler where the settings want that: the operators of each execution.

The profiler is switched on in each connection that the program uses, by the program's first
execution in it, and off at the end of the recording. A profile is read when an execution has ended;
of one whose rows the program does not read to the end, before the next one. This takes no time of
the calls that are measured.
"""

from __future__ import annotations

from weakref import ref

from queryprof.core import _core
from queryprof.core.held_signals import is_of_handler
from queryprof.core.recorder import complain
from queryprof.hooks.chosen import chosen
from queryprof.hooks.drivers.driver import described, find, find_type
from queryprof.hooks.drivers.duckdb_profile import profile_of
from queryprof.hooks.drivers.pep249 import DUCKDB, DUCKDB_QUERIES, KnownDriverHook
from queryprof.hooks.replacing import Replacements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

CONNECTION = "DuckDBPyConnection"
SWITCHED_ON = ("PRAGMA enable_profiling='no_output'", "SET profiling_coverage='ALL'")
"""Nothing is printed; the second one is for what is no SELECT, and newer than the first."""

IS_ON = "SELECT current_setting('enable_profiling')"
EXECUTES = ("execute", "executemany")
ENDS = (*EXECUTES, "close", "__exit__")
"""What ends the execution before: rows that were not read are lost."""

READS_SOME = ("fetchone", "fetchmany", "__next__")
"""Fetches that are the last ones where they return nothing."""


class DuckdbHook(KnownDriverHook):
    """Keeps the probes on DuckDB, and has its profiler read."""

    def __init__(self, module: str) -> None:
        super().__init__(module)
        self._profiler: Profiler | None = None

    def attach(self, module: ModuleType) -> None:
        """Attaches. Raises DriverError: a type or function is missing."""
        connection = find_type(module, CONNECTION)
        wanted = None
        if chosen.operators and hasattr(connection, "get_profiling_information"):
            wanted = Profiler(module, connection)
        elif chosen.operators:
            complain(f"operators are not measured: {described(module)} is older than 1.5")
        super().attach(module)
        if wanted:
            self._profiler = wanted
            wanted.attach(module)

    def detach(self) -> None:
        """Puts everything back."""
        if self._profiler:
            self._profiler.detach()
            self._profiler = None
        super().detach()


class Watched:
    """A connection of the program.

    Attributes:
        is_on: whether its profiler is on; is_ours: was switched on here.
        calls: of it that are in progress.
        sql: what it was last given to execute.
        seen: of the last profile that was read: a hash.
    """

    def __init__(self) -> None:
        self.is_on = self.is_ours = False
        self.calls, self.sql, self.seen = 0, "", 0


class Profiler:
    """Reads DuckDB's profiles of the program's executions.

    It calls the driver's own functions, which are not measured, and keeps no connection alive.
    """

    def __init__(self, module: ModuleType, connection: Any) -> None:
        self._execute = vars(connection)["execute"]
        self._fetchone = vars(connection)["fetchone"]
        self._information = vars(connection)["get_profiling_information"]
        self._switch_off = vars(connection)["disable_profiling"]
        self._default: Callable[[], object] = module.default_connection
        self._type = connection
        self._watched: dict[int, tuple[ref[Any], Watched]] = {}
        self._replacements = Replacements()

    def attach(self, module: ModuleType) -> None:
        """Watches the calls that are measured; the probes are there already."""
        for owner_name, methods in (*DUCKDB.types.items(), ("", DUCKDB.functions)):
            owner = find(module, owner_name) if owner_name else module
            for name in methods:
                probe = vars(owner).get(name)
                if probe is not None and name != "connect":  # that has no connection yet
                    watch = self._watch(name, is_function=not owner_name)
                    self._replacements.set(owner, name, _core.watched_call(probe, watch))

    def detach(self) -> None:
        """Puts everything back, reads the last profiles, and switches the profiler off."""
        self._replacements.undo()
        for connection, watched in self._living():
            if not watched.calls:  # else it would wait for another thread's execution
                self._guarded(self._end, connection, watched)
        self._watched.clear()

    def _watch(self, name: str, is_function: bool) -> Callable[..., None]:
        """What is called before and after each call of a method, or of a function."""
        executes, ends, reads_some = name in EXECUTES, name in ENDS, name in READS_SOME
        begins = executes or name in DUCKDB_QUERIES

        def look(
            is_over: bool, first: object, second: object, chosen: object, result: object
        ) -> None:
            if is_function:
                connection, argument = chosen or self._default(), first
            else:  # a relation knows its connection
                connection, argument = getattr(first, "_con", first), second
            watched = self._of(connection, begins and not is_over)
            if watched is None:
                return
            watched.calls += 1 if not is_over else -1
            if is_over and not (reads_some and result):
                self._read(connection, watched, False)
            elif not is_over and (begins or ends):
                self._read(connection, watched, ends)
            if not is_over and begins:
                watched.sql = argument if executes and isinstance(argument, str) else ""
                self._switch_on(connection, watched, executes)

        return lambda *call: self._guarded(look, *call)

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

    def _guarded(self, function: Callable[..., None], *arguments: object) -> None:
        """Calls a function; what goes wrong in it is not the program's, but for what its signals'
        handlers raise.
        """
        try:
            function(*arguments)
        except Exception as error:
            if is_of_handler(error):
                raise

    def _switch_on(self, connection: Any, watched: Watched, executes: bool) -> None:
        """Switches the profiler on, once. This ends what is executed, as the program's call does,
        unless that makes a relation alone.
        """
        if watched.is_on or (not executes and connection.description is not None):
            return
        self._execute(connection, IS_ON)
        watched.is_on = True
        if self._fetchone(connection)[0] is None:  # else the program has it on
            for statement in SWITCHED_ON:
                self._execute(connection, statement)
                watched.is_ours = True

    def _end(self, connection: Any, watched: Watched) -> None:
        try:
            self._read(connection, watched, True)
        finally:
            if watched.is_ours:
                self._switch_off(connection)

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
            _core.count_operators(sql, bool(profile.sql), profile.operators)
