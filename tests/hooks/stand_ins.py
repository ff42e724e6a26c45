"""Compare every function that queryprof measures with its original, in a separate process.

    python stand_ins.py

It prints a JSON object: the number of functions measured in place, the number of stand-ins, the Python
functions that have a stand-in, the differences for each kind of look, and the functions that were not
restored.
"""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import json
import pickle
import sys
import types
import typing
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from unittest import mock

LIBRARIES = (
    "sqlite3 asyncio aiosqlite psycopg psycopg2.extras asyncpg pymysql.cursors duckdb trio uvloop"
    " twisted.internet.selectreactor twisted.python.threadpool apsw sqlalchemy.orm"
    " sqlalchemy.ext.asyncio django.db.models concurrent.futures.thread oracledb libsql"
    " pysqlite3 sqlcipher3 sqlean anyio._backends._asyncio toy_driver"
).split()

TOY_DRIVER = '''
import functools

class Cursor:
    """A cursor in Python."""
    def __init__(self, connection: "Connection" = None) -> None: self.connection = connection
    def execute(self, sql: str, parameters: tuple = (), *, kept: int = 3) -> "Cursor":
        """Executes a statement."""
        return self
    def executemany(self, sql, rows): return [self.execute(sql, row) for row in rows]
    def fetchone(self): return (1,)
    fetchmany = functools.lru_cache(lambda self, size=1: [(1,)] * size)
    @classmethod
    def fetchall(cls): return cls

class Connection:
    execute = functools.partial(print)
    async def commit(self) -> int: return 7
    def cursor(self): return Cursor(self)

def connect(path): return Connection()
'''


def looks(name: str) -> dict[str, Callable[[typing.Any], object]]:
    """Return ways to inspect a function, by name. Each returns a comparable value."""

    def wrapped(f: typing.Any) -> object:
        around = functools.wraps(f)(lambda *_: None)
        return {n: getattr(around, n, None) for n in (*functools.WRAPPER_ASSIGNMENTS, "__dict__")}

    def autospecced(f: typing.Any) -> object:
        made = mock.create_autospec(f)
        return str(inspect.signature(made)), type(made).__name__

    attributes = (
        *("__name__", "__qualname__", "__module__", "__doc__", "__defaults__", "__kwdefaults__"),
        *(
            "__code__",
            "__globals__",
            "__closure__",
            "__annotations__",
            "__type_params__",
            "__self__",
        ),
        *("__func__", "__dict__", "__objclass__", "__text_signature__", "__isabstractmethod__"),
    )
    return {
        **{a: functools.partial(lambda a, f: getattr(f, a), a) for a in attributes},
        **{
            n: getattr(inspect, n)
            for n, _ in inspect.getmembers(inspect, inspect.isfunction)
            if n.startswith("is") and n not in ("isdatadescriptor", "iskeyword")
        },
        "class": lambda f: f.__class__,
        "isinstance": lambda f: isinstance(f, types.FunctionType),
        "callable": callable,
        "hash": hash,
        "repr": repr,
        "dir": dir,
        "signature": lambda f: str(inspect.signature(f)),
        "full arguments": inspect.getfullargspec,
        "source": inspect.getsource,
        "source file": inspect.getsourcefile,
        "documentation": inspect.getdoc,
        "type hints": typing.get_type_hints,
        "annotations": inspect.get_annotations,
        "weak reference": lambda f: weakref.ref(f)() is f,
        "copy": lambda f: copy.copy(f) is f,
        "deep copy": lambda f: copy.deepcopy(f) == f,
        "pickle": pickle.dumps,
        "functools.wraps": wrapped,
        "functools.partial": lambda f: functools.partial(f, 1).func is f,
        "partialmethod": lambda f: repr(functools.partialmethod(f, 1)),
        "singledispatch": lambda f: functools.singledispatch(f).__name__,
        "bound": lambda f: type(f.__get__(3, int)).__name__,
        "bound to": lambda f: f.__get__(3, int).__self__,
        "unbound": lambda f: f.__get__(None, int) == f,
        "sized": len,
        "equal": lambda f: f == copy.copy(f),
        "in a set": lambda f: copy.copy(f) in {f, 1},
        "create_autospec": autospecced,
        "static method": lambda f: staticmethod(f).__func__ is f,
        "property": lambda f: property(f).fget is f,
        "set and delete": functools.partial(set_and_delete, name),
    }


def set_and_delete(_name: str, f: typing.Any) -> object:
    f.queryprof_test = 1
    found = f.queryprof_test, f.__dict__.get("queryprof_test")
    del f.queryprof_test
    return found, hasattr(f, "queryprof_test")


def answers(place: tuple[object, str]) -> dict[str, object]:
    """Return everything that a program can observe of the function at a place."""
    owner, name = place
    found = getattr(owner, name) if name not in vars(owner) else vars(owner)[name]
    seen: dict[str, object] = {}
    for what, look in looks(name).items():
        try:
            seen[what] = look(function_in(found))
        except Exception as error:
            seen[what] = type(error).__name__
    try:
        with mock.patch.object(owner, name, autospec=True) as made:
            seen["patched with autospec"] = type(made).__name__
        seen["patched and back"] = (vars(owner).get(name) or getattr(owner, name)) is found
    except TypeError as error:  # an immutable type
        seen["patched with autospec"] = str(error)
    seen["is a class method"] = type(found) is classmethod
    return seen


def functions_by_place() -> dict[tuple[object, str], object]:
    """Yield every callable attribute of the classes and modules in the libraries."""
    found = {}
    roots = {name.partition(".")[0] for name in LIBRARIES} | {"threading", "_sqlite3"}
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").partition(".")[0].lstrip("_") not in roots:
            continue
        for name, value in list(vars(module).items()):
            if hasattr(type(value), "__call__"):  # noqa: B004  (a lazy object is not set up)
                found[module, name] = value
            if isinstance(value, type):
                for method, inner in list(vars(value).items()):
                    if hasattr(type(inner), "__call__") or type(inner) is classmethod:  # noqa: B004
                        found[value, method] = inner
    return found


def function_in(found: object) -> object:
    return found.__func__ if type(found) is classmethod else found


def main() -> None:
    directory = Path.cwd()
    directory.joinpath("toy_driver.py").write_text(TOY_DRIVER)
    sys.path.insert(0, str(directory))
    with suppress(ImportError):
        from django.conf import settings

        settings.configure()
    for library in LIBRARIES:
        try:
            importlib.import_module(library)
        except Exception:
            continue  # not installed for this Python
    import queryprof
    from queryprof.core import _core

    before = functions_by_place()
    queryprof.instrument("toy_driver")
    queryprof.install("first.qprof")
    measured = {
        place: now
        for place, now in functions_by_place().items()
        if now is not before.get(place) or _core.is_measured_in_place(function_in(now))
    }
    queryprof.uninstall()
    bare = {place: answers(place) for place in measured}
    queryprof.install("second.qprof")
    differences: dict[str, list[str]] = {}
    in_place = sum(_core.is_measured_in_place(function_in(vars(o)[n])) for o, n in measured)
    replaced_functions = [
        f"{owner} {name}"
        for owner, name in measured
        if isinstance(function_in(before.get((owner, name))), types.FunctionType)
        and not _core.is_measured_in_place(function_in(vars(owner)[name]))
    ]
    for place in measured:
        for what, answer in answers(place).items():
            if answer != bare[place][what]:
                texts = f"{place[0]} {place[1]}: {bare[place][what]!r:.80} {answer!r:.80}"
                differences.setdefault(what, []).append(texts)
    queryprof.uninstall()
    after = functions_by_place()
    left = [str(place) for place, was in before.items() if after.get(place) is not was]
    left += [str(f) for f in after.values() if _core.is_measured_in_place(function_in(f))]
    for place in measured:
        left += [f"{place} {what}" for what, a in answers(place).items() if a != bare[place][what]]
    found = {
        "in_place": in_place,
        "replaced": len(measured) - in_place,
        "replaced_functions": replaced_functions,
        "differences": differences,
        "left": left,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
