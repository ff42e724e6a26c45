"""Find the places where a program gives Python functions to its database driver."""

from __future__ import annotations

import ast
from functools import cache

from queryprof.program.source_loops import parse_source

REGISTRATIONS = frozenset(
    {
        *("create_aggregate", "create_collation", "create_function", "create_window_function"),
        *("register_adapter", "register_converter", "set_authorizer", "set_progress_handler"),
        *("set_trace_callback", "create_aggregate_function", "create_scalar_function"),
        *("set_exec_trace", "set_profile", "set_row_trace", "set_update_hook"),
    }
)
"""Methods of sqlite3 and APSW that take a function which the driver calls."""

FACTORIES = frozenset({"row_factory", "text_factory"})
"""Attributes of connections and cursors that hold a function."""

TYPES = "detect_types"
"""Argument of sqlite3.connect() that makes sqlite3 call a converter for each value of a type."""

IN_C = frozenset({"Row", "bytes", "bytearray", "str"})
"""Factories that run no Python code."""


@cache
def driver_callbacks(text: str) -> tuple[tuple[int, str], ...]:
    """Return each place that registers a function with a driver: its line, and the method or
    attribute.
    """
    names = {*REGISTRATIONS, *FACTORIES, TYPES}
    tree = parse_source(text) if any(name in text for name in names) else None  # parsing is slow
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", "")
            if name in REGISTRATIONS:
                found.append((node.lineno, f"{name}()"))
            found += [(node.lineno, TYPES) for one in node.keywords if one.arg == TYPES]
        elif isinstance(node, ast.Assign) and not _runs_in_c(node.value):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and target.attr in FACTORIES:
                    found.append((node.lineno, target.attr))
    return tuple(sorted(found))


def _runs_in_c(value: ast.expr) -> bool:
    name = value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")
    return name in IN_C or (isinstance(value, ast.Constant) and value.value is None)
