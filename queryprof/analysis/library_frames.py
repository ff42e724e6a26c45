"""Find out from a stack which library executed a statement, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import dropwhile, takewhile

from queryprof.model import Frame

LAZY = "lazy load of "
"""A statement's note starts with this if an ORM loaded an attribute lazily. The class and attribute
follow.
"""

MANY, COLUMN = "all ", "column "
"""The word after LAZY: MANY for a to-many relation, COLUMN for a deferred column."""

INSTALLED = ("/site-packages/", "/dist-packages/")
"""Path parts that precede the package in the file name of a library's frame."""

THREAD_HANDOFF_DRIVERS = frozenset({"aiosqlite"})
"""Drivers that hand their work to a thread."""

DRIVERS = THREAD_HANDOFF_DRIVERS | {
    "apsw",
    "asyncpg",
    "duckdb",
    "libsql",
    "MySQLdb",
    "mysql",
    "oracledb",
    "pg8000",
    "psycopg",
    "psycopg2",
    "pymysql",
    "pysqlite3",
    "sqlcipher3",
    "sqlean",
    "sqlite3",
}
"""Database drivers: packages that execute SQL for the program or for another library."""

WRAPPERS = frozenset({"dataset"})
"""Packages that wrap another database package."""


MAPPERS = frozenset({"django", "peewee", "pony", "sqlalchemy", "tortoise"})
"""Object mappers."""

PASS_THROUGH_LIBRARIES = frozenset({"pandas", "polars", "sql", "databases"})
"""Packages that execute the program's own statements unchanged. `sql` is part of jupysql."""

EXTENSIONS = ("alchemy", "django", "playhouse", "rest_framework", "sqlmodel")
"""Parts of the names of packages that extend an object mapper."""


def package_near_driver(stack: Iterable[Frame], wrappers: frozenset[str] = WRAPPERS) -> str:
    """Return the library package nearest to the driver, or a wrapper around that package. If the
    program calls the driver directly, return "" or the driver's package.
    """
    nearest = ""
    for frame in stack:
        if frame.kind == "user":
            break
        package = package_of(frame)
        if package in wrappers:
            return package
        nearest = package if package and nearest in ("", *DRIVERS) else nearest
    return nearest


def package_that_executes(stack: Sequence[Frame]) -> str:
    """Return the package near the driver. If that is an object mapper that another package calls
    with its own models, return the other package: the program cannot change its queries.

    A package that only iterates over a query, or reads an attribute, does not count: the program
    may have made the query or the object.
    """
    mapper = package_near_driver(stack)
    if mapper not in MAPPERS or all(frame.kind != "user" for frame in stack):
        return mapper
    inside = [one for one in takewhile(lambda one: one.kind != "user", stack) if package_of(one)]
    outwards = dropwhile(lambda frame: package_of(frame) != mapper, inside)
    *_, entry = takewhile(lambda frame: package_of(frame) == mapper, outwards)
    called = package_of(inside[-1])
    is_own = called not in (mapper, *PASS_THROUGH_LIBRARIES)
    is_extension = any(part in called for part in EXTENSIONS)
    is_call = not entry.function.rpartition(".")[2].startswith("__")
    return called if is_own and is_call and not is_extension else mapper


def package_of(frame: Frame) -> str:
    """Return the installed package of a frame; "" if none."""
    for folder in INSTALLED:
        _, found, rest = frame.file.rpartition(folder)
        if found:
            return rest.partition("/")[0].removesuffix(".py")
    return ""


def runs_in_driver_thread(stack: Iterable[Frame]) -> bool:
    """Return whether the driver ran the call in its own worker thread (aiosqlite). The stack of
    such a call may lack the frames of a library that uses the driver.
    """
    return package_near_driver(stack, THREAD_HANDOFF_DRIVERS) in THREAD_HANDOFF_DRIVERS


LOADERS = (
    "_LazyLoader.",
    "LazyLoader.",
    "ForwardManyToOneDescriptor.",
    "ReverseOneToOneDescriptor.",
    "DeferredAttribute.",
)
"""Classes of ORMs whose methods load the target of an attribute."""

LOADS_MANY = "QuerySet._fetch_all"
"""Django's function for ordinary queries, which also loads relations to many objects."""


def is_lazy_load(stack: Iterable[Frame], note: str) -> bool:
    """Return whether the stack shows an ORM lazily loading the attribute in the note."""
    loaders = (*LOADERS, LOADS_MANY) if note.startswith(LAZY + MANY) else LOADERS
    return any(frame.function.startswith(loaders) for frame in stack)


OWN = ("DatabaseOperations._quote_params_for_last_executed_query",)
"""Functions of libraries that execute statements for themselves. This function formats Django's
query list under DEBUG.
"""

DISPATCHERS = (
    "werkzeug/",
    "flask/",
    "starlette/",
    "fastapi/",
    "django/core/handlers/",
    "aiohttp/web",
)
"""Files of packages that call a program's function for a request."""


def frames_outside_request(stack: Iterable[Frame]) -> frozenset[Frame]:
    """Return the program's frames outside a request that a web framework handles, such as a test
    function that sends the request.
    """
    found, is_outside = set(), False
    for frame in stack:
        is_outside = is_outside or _is_dispatcher(frame)
        if is_outside and frame.kind == "user":
            found.add(frame)
    return frozenset(found)


def is_request(stack: Iterable[Frame]) -> bool:
    """Return whether a web framework called the program's function for a request."""
    return any(map(_is_dispatcher, stack))


def _is_dispatcher(frame: Frame) -> bool:
    rests = (parts[2] for folder in INSTALLED if (parts := frame.file.rpartition(folder))[1])
    return next(rests, "").startswith(DISPATCHERS)


def is_library_statement(stack: Iterable[Frame]) -> bool:
    """Return whether a library executes the statement for itself and not for the program."""
    return any(frame.function.startswith(OWN) for frame in stack)
