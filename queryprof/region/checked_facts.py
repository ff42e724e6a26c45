"""The kinds of the facts in a region. Each fact is checked here, where it is read: a file of a
stranger cannot bring a value of another kind to the code that uses it.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

INT64 = 1 << 63
LARGEST_PID = 1 << 31
MOST_VALUES = 100_000
"""Arguments, cells, modules."""


def _is_text(value: object) -> bool:
    """Whether it is a text that a path, a name or a column can hold. Python's own escapes of
    undecodable bytes (surrogateescape) are allowed, other surrogates are not.
    """
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _is_integer(value: object) -> bool:
    return type(value) is int and -INT64 <= value < INT64


def _is_number(value: object) -> bool:
    return _is_integer(value) or (isinstance(value, float) and math.isfinite(value))


def _is_pid(value: object) -> bool:
    return type(value) is int and 0 <= value < LARGEST_PID


def _are_texts(value: object) -> bool:
    return (
        isinstance(value, list | tuple) and len(value) <= MOST_VALUES and all(map(_is_text, value))
    )


def _are_cells(value: object) -> bool:
    return isinstance(value, dict) and _are_texts([*value]) and _are_texts([*value.values()])


def _or_none(is_kind: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or is_kind(value)


REQUIRED = {
    "pid": _is_pid,
    "start_unix_ns": _is_integer,
    "host": _is_text,
    "arguments": _are_texts,
    "operations": _are_texts,
}
KINDS: dict[str, Callable[[object], bool]] = {
    **REQUIRED,
    "parent_pid": _is_pid,
    "directory": _is_text,
    "trace": _is_text,
    "python_version": _is_text,
    "sqlite_version": _is_text,
    "queryprof_version": _is_text,
    "clock": _is_text,
    "rows_estimated": _is_integer,
    "clock_tick_ns": _or_none(_is_number),
    "counters_off": _or_none(_is_text),
    "files_off": _or_none(_is_text),
    "unmeasured": _or_none(_are_texts),
    "end_unix_ns": _is_integer,
    "read_bytes": _or_none(_is_integer),
    "written_bytes": _or_none(_is_integer),
    "peak_memory_bytes": _or_none(_is_integer),
    "cells": _are_cells,
    "service": _or_none(_is_text),
    "version": _or_none(_is_text),
    "environment": _or_none(_is_text),
}
"""By the name of a fact, whether a value is of its kind."""


def checked(facts: Mapping[Any, Any]) -> dict[str, Any]:
    """The known facts. Raises ValueError with the name of a missing or wrong one."""
    known = {name: facts[name] for name in KINDS if name in facts}
    for name in REQUIRED:
        if name not in known:
            raise ValueError(name)
    for name, value in known.items():
        if not KINDS[name](value):
            raise ValueError(name)
    return known
