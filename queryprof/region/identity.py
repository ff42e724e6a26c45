"""Which process a recording is of: the facts in its region."""

from __future__ import annotations

import os
from ast import literal_eval

from queryprof.errors import TraceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from queryprof.region.region import Region
    from queryprof.trace.processes import Identity


def identity_of(region: Region) -> Identity:
    """The identity of a region's process.

    Raises:
        TraceError: the region has none.
    """
    facts = facts_of(region)
    try:
        return int(facts["pid"]), int(facts["start_unix_ns"]), str(facts["host"])
    except (KeyError, TypeError, ValueError):
        raise TraceError(f"{region.path}: has no data of its process") from None


def facts_of(region: Region) -> dict[str, Any]:
    """The facts of a region's process.

    Raises:
        TraceError: the region has none, or they are damaged.
    """
    try:
        number = region["facts"]
        if region.facts is not None and region.facts[0] == number:
            return region.facts[1]
        facts = literal_eval(region.text(number))
        if isinstance(facts, dict):
            region.facts = number, facts
            return facts
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        pass  # as below
    raise TraceError(f"{region.path}: has no data of its process")


def trace_of(region: Region) -> str:
    """Where the process of a region would have written its trace. Raises ValueError."""
    trace = facts_of(region).get("trace")
    if not isinstance(trace, str) or not os.path.isabs(trace):
        raise ValueError("no path")
    return trace
