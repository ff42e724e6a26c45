"""Descriptions of drivers, and the hook that attaches to them.

A description lists where a DB-API module keeps its connections and cursors, and what their methods
do. Methods of C types and, if possible, Python functions are measured in place. A wrapper replaces
other functions. Only PEP 249 is required (https://peps.python.org/pep-0249/).
"""

from __future__ import annotations

from queryprof.core import _core
from queryprof.core.systems import SYSTEMS
from queryprof.errors import DriverError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    Methods = Mapping[str, str | "QueryMethod"]

RESULTS = ("cursor", "rows", "row", "status", "portal", "values")
"""Kinds of return values of executing methods: qp_result_kind (core/runtime/operations.h)."""


class QueryMethod:
    """A method that executes a statement in a way that differs from PEP 249.

    Args:
        operation: the name of its operation, as for other methods.
        returns: one of RESULTS. Unless it is "cursor", each further argument is a parameter.
        text_of: attribute of the receiver that contains the statement; by default, the statement is
            the first argument. For a pool wait: the name of the argument that allows waiting (or
            ""), and the attributes that lead to the free connections; by default, each call waits.
    """

    def __init__(
        self, operation: str, returns: str = "cursor", *text_of: str | tuple[str, ...]
    ) -> None:
        self.operation = operation
        self.returns = RESULTS.index(returns)
        self.text_of = text_of


PROCEDURE = QueryMethod("execute", "values")

CURSOR_METHODS: dict[str, str | QueryMethod] = {
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
"""Operations of the methods of PEP 249, and of methods with the same meaning that drivers add. The
statement of callproc is the name of the procedure.
"""

MODULE_FUNCTIONS = {"connect": "connect"}


class Probes:
    """Probes on the functions of types and modules: attached one by one, detached together."""

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
        """Attach a probe to each method that the owner itself defines. Returns the number of
        probes.

        Args:
            methods: the operation of each method, by name; or its QueryMethod.
            cursor_type: a C type with `rowcount` and `connection`; the owner is this type, or the
                type of its connections.
            has_own_sqlite: whether the driver has its own SQLite, different from sqlite3's.
            system: the database system, one of SYSTEMS.
        """
        operations = _core.operation_names()
        own = vars(owner)
        before = len(self._attachments)
        for method, operation in methods.items():
            if own.get(method) is not None:
                query = operation if isinstance(operation, QueryMethod) else QueryMethod(operation)
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
        """Remove all probes, in reverse order."""
        while self._attachments:
            _core.detach(self._attachments.pop())


class Driver:
    """The description of a driver.

    Attributes:
        module: the module that the program imports.
        types: operations of methods by type, given as a dotted name in the module. "?" at the end
            marks a type that only some versions have.
        functions: operations of functions, by dotted names in the module.
        system: the database system, one of SYSTEMS.
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
    """The probes on a driver."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.module = driver.module
        self.probes = Probes()

    def attach(self, module: ModuleType) -> None:
        """Patch the driver's types and functions; all or none.

        Raises:
            DriverError: a type or function is missing.
        """
        try:
            for name, methods in self.driver.types.items():
                owner = find_type(module, name.removesuffix("?"))
                if owner is not None:
                    self._attach(owner, name, methods)
                elif not name.endswith("?"):
                    raise DriverError(
                        f"{name_and_version(module)} has no {name}; too old, or too new?"
                    )
            for name, operation in self.driver.functions.items():
                home, _, function = name.rpartition(".")
                place = find_object(module, home) if home else module
                self.probes.attach(place, {function: operation}, system=self.driver.system)
        except BaseException:
            self.detach()
            raise

    def detach(self) -> None:
        """Restore the driver."""
        self.probes.detach()

    def _attach(self, owner: type, name: str, methods: Methods) -> None:
        if not self.probes.attach(owner, methods, system=self.driver.system):
            raise DriverError(f"{name} of {self.module} has none of {', '.join(methods)}")


def find_type(module: ModuleType, name: str) -> type | None:
    """Return the type with this dotted name, or None."""
    found = find_object(module, name)
    return found if isinstance(found, type) else None


def find_object(module: ModuleType, name: str) -> object:
    """Return the object with this dotted name, or None."""
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def name_and_version(module: ModuleType) -> str:
    """Return a module's name and version."""
    version = getattr(module, "__version__", None) or getattr(module, "version", None)
    return f"{module.__name__} {version}" if isinstance(version, str) else module.__name__
