"""The description of a driver: where a DB-API module keeps its connections and cursors, and what
their methods do; and the hook that attaches to it.

The C types' methods are exchanged in place, functions in Python are replaced by an attribute.
Requires no more than PEP 249 (https://peps.python.org/pep-0249/).
"""

from __future__ import annotations

from queryprof.core import _core
from queryprof.core.systems import SYSTEMS
from queryprof.errors import DriverError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    Methods = Mapping[str, str | "Query"]

RESULTS = ("cursor", "rows", "row", "status", "portal", "values")
"""What an execution's method returns, by qp_returns of the core (runtime/operations.h)."""


class Query:
    """A method that executes a statement otherwise than PEP 249 has it.

    Args:
        operation: as that of the others.
        returns: one of RESULTS; but for a cursor, each further argument is a parameter.
        text_of: the receiver's attribute that is the statement; none: the first argument is.
    """

    def __init__(self, operation: str, returns: str = "cursor", *text_of: str) -> None:
        self.operation = operation
        self.returns = RESULTS.index(returns)
        self.text_of = text_of


PROCEDURE = Query("execute", "values")

CURSOR_METHODS: dict[str, str | Query] = {
    "execute": "execute",
    "executemany": "executemany",
    "fetchone": "fetchone",
    "fetchmany": "fetchmany",
    "fetchall": "fetchall",
    "__next__": "next",
    "callproc": PROCEDURE,
    "callfunc": PROCEDURE,
}
CONNECTION_METHODS = {
    "execute": "execute",
    "executemany": "executemany",
    "commit": "commit",
    "rollback": "rollback",
    "__exit__": "exit",
    "close": "close",
}
"""The methods of PEP 249, and those that drivers add with the same meaning.
The statement of callproc is the name of the procedure."""

MODULE_FUNCTIONS = {"connect": "connect"}


class Probes:
    """Probes on the functions of types and modules: put on one by one, taken off together."""

    def __init__(self) -> None:
        self._attachments: list[_core.Attachment] = []

    def attach(
        self,
        owner: object,
        methods: Methods,
        cursor_type: type | None = None,
        has_own_sqlite: bool = False,
        system: str = "sqlite",
    ) -> int:
        """Puts a probe on each of the methods that the owner itself has; returns how many.

        Args:
            methods: the operation of each name, or its Query.
            cursor_type: a C type whose `rowcount` and `connection` are looked for; the owner is
                this type, or that of its connections.
            has_own_sqlite: the driver has its own SQLite, not that of sqlite3.
            system: of the database, one of SYSTEMS.
        """
        operations = _core.operations()
        own = vars(owner)
        before = len(self._attachments)
        for method, operation in methods.items():
            if own.get(method) is not None:
                query = operation if isinstance(operation, Query) else Query(operation)
                number = operations.index(query.operation)
                self._attachments.append(
                    _core.attach(
                        owner,
                        method,
                        number,
                        cursor_type,
                        has_own_sqlite,
                        SYSTEMS.index(system),
                        query.returns,
                        *query.text_of,
                    )
                )
        return len(self._attachments) - before

    def detach(self) -> None:
        """Removes all probes, in the reverse order."""
        while self._attachments:
            _core.detach(self._attachments.pop())


class Driver:
    """The description of a driver.

    Attributes:
        module: what the program imports.
        types: for each type, by its dotted name in the module, the operations of its methods;
            a type that only some versions have ends in "?".
        functions: the operations of functions, by their dotted names in the module.
        system: of its database, one of SYSTEMS.
    """

    def __init__(
        self,
        module: str,
        types: Mapping[str, Methods],
        functions: Methods = MODULE_FUNCTIONS,
        system: str = "other_sql",
    ) -> None:
        self.module = module
        self.types = types
        self.functions = functions
        self.system = system


class DriverHook:
    """Keeps the probes on a driver."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.module = driver.module
        self.probes = Probes()

    def attach(self, module: ModuleType) -> None:
        """Patches the driver's types and functions; all of them or none.

        Raises:
            DriverError: a type or function is missing.
        """
        try:
            for name, methods in self.driver.types.items():
                owner = find_type(module, name.removesuffix("?"))
                if owner is not None:
                    self._attach(owner, name, methods)
                elif not name.endswith("?"):
                    raise DriverError(f"{described(module)} has no {name}; too old, or too new?")
            for name, operation in self.driver.functions.items():
                home, _, function = name.rpartition(".")
                place = find(module, home) if home else module
                self.probes.attach(place, {function: operation}, system=self.driver.system)
        except BaseException:
            self.detach()
            raise

    def detach(self) -> None:
        """Puts everything back."""
        self.probes.detach()

    def _attach(self, owner: type, name: str, methods: Methods) -> None:
        if not self.probes.attach(owner, methods, system=self.driver.system):
            raise DriverError(f"{name} of {self.module} has none of {', '.join(methods)}")


def find_type(module: ModuleType, name: str) -> type | None:
    """The type with this dotted name, or None."""
    found = find(module, name)
    return found if isinstance(found, type) else None


def find(module: ModuleType, name: str) -> object:
    """What has this dotted name, or None."""
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def described(module: ModuleType) -> str:
    """A module's name and version."""
    version = getattr(module, "__version__", None) or getattr(module, "version", None)
    return f"{module.__name__} {version}" if isinstance(version, str) else module.__name__
