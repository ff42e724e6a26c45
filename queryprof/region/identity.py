"""Which process a recording is of: the facts in its region."""

from __future__ import annotations

import os
from ast import literal_eval

from queryprof.errors import TraceError
from queryprof.region.checked_facts import checked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from queryprof.region.region import Region
    from queryprof.trace.processes import Identity


def identity_of(region: Region) -> Identity:
    """The identity of a region's process. Raises TraceError as facts_of does."""
    facts = facts_of(region)
    return int(facts["pid"]), int(facts["start_unix_ns"]), str(facts["host"])


def facts_of(region: Region) -> dict[str, Any]:
    """The facts of a region's process, each of its kind.

    Raises:
        TraceError: the region has none, or one of them is damaged.
    """
    number = region["facts"]
    if region.facts is not None and region.facts[0] == number:
        return region.facts[1]
    try:
        facts = literal_eval(region.text(number))
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        raise TraceError(f"{region.path}: has no data of its process")
    try:
        region.facts = number, checked(facts)
    except ValueError as error:
        raise TraceError(f"{region.path}: damaged: the process's {error}") from None
    return region.facts[1]


def trace_of(region: Region) -> str:
    """Where the process of a region would have written its trace.

    Raises:
        TraceError: it writes none, or its facts are damaged.
    """
    trace = facts_of(region).get("trace")
    if not isinstance(trace, str) or not os.path.isabs(trace):
        raise TraceError(f"{region.path}: records for no trace")
    return trace
