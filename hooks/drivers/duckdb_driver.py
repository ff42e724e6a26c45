"""DuckDB: its calls, its relations, and its profiler where the settings want that."""

from __future__ import annotations

from weakref import ref

from queryprof.core import _core
from queryprof.core.recorder import complain
from queryprof.hooks.chosen import chosen
from queryprof.hooks.drivers.driver import described, find_type
from queryprof.hooks.drivers.pep249 import DUCKDB_QUERIES, KnownDriverHook
from queryprof.hooks.replacing import Replacements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from queryprof.hooks.drivers.duckdb_profiler import Profiler

CONNECTION = "DuckDBPyConnection"


class DuckdbHook(KnownDriverHook):
    """Keeps the probes on DuckDB, and has its profiler read."""

    def __init__(self, module: str) -> None:
        super().__init__(module)
        self._profiler: Profiler | None = None
        self._has_complained = False
        self._relations = Relations()

    def attach(self, module: ModuleType) -> None:
        """Attaches. Raises DriverError: a type or function is missing."""
        connection = find_type(module, CONNECTION)
        wanted = None
        if chosen.operators and hasattr(connection, "get_profiling_information"):
            from queryprof.hooks.drivers.duckdb_profiler import Profiler

            wanted = Profiler(module, connection)
        elif chosen.operators and not self._has_complained:
            self._has_complained = True
            complain(f"operators are not measured: {described(module)} is older than 1.5")
        super().attach(module)
        self._relations.attach(module, connection)
        if wanted:
            self._profiler = wanted
            wanted.attach(module)

    def detach(self) -> None:
        """Puts everything back."""
        if self._profiler:
            self._profiler.detach()
            self._profiler = None
        self._relations.detach()
        super().detach()


class Relation(ref[object]):
    """A relation of the program, as long as it lives; its address."""

    __slots__ = ("address",)
    address: int


class Relations:
    """Lets the core know when relations go: another one may get the address, and its rows are
    fetched without an execution of its own.
    """

    def __init__(self) -> None:
        self._replacements = Replacements()
        self._living: dict[int, Relation] = {}

    def attach(self, *owners: object) -> None:
        """Watches what makes relations; the probes are there already."""
        for owner in owners:
            for name in DUCKDB_QUERIES.keys() & vars(owner).keys():
                made = _core.watched_call(vars(owner)[name], self._made)
                self._replacements.measure(owner, name, made)

    def detach(self) -> None:
        """Puts everything back."""
        self._replacements.undo()
        self._living.clear()

    def _made(self, is_over: bool, *call: object) -> None:
        relation = call[-1]
        if is_over and relation is not None:
            try:
                made = Relation(relation, self._gone)
            except TypeError:
                return  # of a version whose relations have no weak references
            made.address = id(relation)
            self._living[made.address] = made

    def _gone(self, relation: Relation) -> None:
        self._living.pop(relation.address, None)
        _core.leave_cursor(relation.address)
