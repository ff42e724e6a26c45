"""Check the types of the facts (data about the process) in a region.

So an untrusted file cannot pass a value of another type to the code that uses the fact.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

INT64 = 1 << 63
MAX_PID = 1 << 31
MAX_VALUES = 100_000
"""Maximum number of arguments, cells or modules."""


def _is_text(value: object) -> bool:
    """Return whether a value is a text that a path, name or column can hold.

    Python's escapes of undecodable bytes (surrogateescape) are allowed, other surrogates are not.
    """
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _is_int64(value: object) -> bool:
    return type(value) is int and -INT64 <= value < INT64


def _is_number(value: object) -> bool:
    return _is_int64(value) or (isinstance(value, float) and math.isfinite(value))


def _is_pid(value: object) -> bool:
    return type(value) is int and 0 <= value < MAX_PID


def _are_texts(value: object) -> bool:
    return (
        isinstance(value, list | tuple) and len(value) <= MAX_VALUES and all(map(_is_text, value))
    )


def _are_cell_texts(value: object) -> bool:
    return isinstance(value, dict) and _are_texts([*value]) and _are_texts([*value.values()])


def _or_none(is_kind: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or is_kind(value)


REQUIRED = {
    "pid": _is_pid,
    "start_unix_ns": _is_int64,
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
    "rows_estimated": _is_int64,
    "clock_tick_ns": _or_none(_is_number),
    "counters_off": _or_none(_is_text),
    "files_off": _or_none(_is_text),
    "unmeasured": _or_none(_are_texts),
    "end_unix_ns": _is_int64,
    "read_bytes": _or_none(_is_int64),
    "written_bytes": _or_none(_is_int64),
    "peak_memory_bytes": _or_none(_is_int64),
    "cells": _are_cell_texts,
    "service": _or_none(_is_text),
    "version": _or_none(_is_text),
    "environment": _or_none(_is_text),
}
"""The check for each fact, by the fact's name."""


def check_facts(facts: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the known facts. Raises ValueError with the name of a missing or invalid fact."""
    known = {name: facts[name] for name in KINDS if name in facts}
    for name in REQUIRED:
        if name not in known:
            raise ValueError(name)
    for name, value in known.items():
        if not KINDS[name](value):
            raise ValueError(name)
    return known
