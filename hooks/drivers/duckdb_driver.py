"""DuckDB: its calls and its relations."""

from __future__ import annotations

from weakref import ref

from queryprof.core import _core
from queryprof.hooks.drivers.driver import find_type
from queryprof.hooks.drivers.pep249 import DUCKDB_QUERIES, KnownDriverHook
from queryprof.hooks.replacing import Replacements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

CONNECTION = "DuckDBPyConnection"


class DuckdbHook(KnownDriverHook):
    """The probes on DuckDB, and the watch on its relations."""

    def __init__(self, module: str) -> None:
        super().__init__(module)
        self._relations = Relations()

    def attach(self, module: ModuleType) -> None:
        """Attach to DuckDB. Raises DriverError if a type or function is missing."""
        connection = find_type(module, CONNECTION)
        super().attach(module)
        self._relations.attach(module, connection)

    def detach(self) -> None:
        """Restore DuckDB."""
        self._relations.detach()
        super().detach()


class Relation(ref[object]):
    """A weak reference to a relation of the program, with its address."""

    __slots__ = ("address",)
    address: int


class Relations:
    """Notifies the core when a relation ceases to exist.

    Otherwise another relation might reuse the address, and its rows might be fetched without a
    recorded execution.
    """

    def __init__(self) -> None:
        self._replacements = Replacements()
        self._living: dict[int, Relation] = {}

    def attach(self, *owners: object) -> None:
        """Watch the functions that create relations. The probes are attached already."""
        for owner in owners:
            for name in DUCKDB_QUERIES.keys() & vars(owner).keys():
                made = _core.watched_call_wrapper(vars(owner)[name], self._on_relation_made)
                self._replacements.measure(owner, name, made)

    def detach(self) -> None:
        """Restore the functions."""
        self._replacements.undo()
        self._living.clear()

    def _on_relation_made(self, is_over: bool, *call: object) -> None:
        relation = call[-1]
        if is_over and relation is not None:
            try:
                made = Relation(relation, self._relation_freed)
            except TypeError:
                return  # relations of this version do not support weak references
            made.address = id(relation)
            self._living[made.address] = made

    def _relation_freed(self, relation: Relation) -> None:
        self._living.pop(relation.address, None)
        _core.forget_cursor(relation.address)
