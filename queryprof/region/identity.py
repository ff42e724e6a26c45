"""Identify the process of a recording by the facts in its region."""

from __future__ import annotations

import os
from ast import literal_eval

from queryprof.errors import TraceError
from queryprof.region.checked_facts import check_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from queryprof.region.region import Region
    from queryprof.trace.processes import Identity


def region_identity(region: Region) -> Identity:
    """Return the identity of a region's process. Raises TraceError like region_facts."""
    facts = region_facts(region)
    return int(facts["pid"]), int(facts["start_unix_ns"]), str(facts["host"])


def region_facts(region: Region) -> dict[str, Any]:
    """Return the facts about a region's process, with checked types.

    Raises:
        TraceError: facts are missing or damaged.
    """
    number = region["facts"]
    if region.facts is not None and region.facts[0] == number:
        return region.facts[1]
    try:
        facts = literal_eval(region.text(number))
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        raise TraceError(f"{region.path}: has no data about its process")
    try:
        region.facts = number, check_facts(facts)
    except ValueError as error:
        raise TraceError(f"{region.path}: damaged: the process's {error}") from None
    return region.facts[1]


def region_trace_path(region: Region) -> str:
    """Return the path at which the process of a region writes its trace when it ends.

    Raises:
        TraceError: the process writes no trace, or its facts are damaged.
    """
    trace = region_facts(region).get("trace")
    if not isinstance(trace, str) or not os.path.isabs(trace):
        raise TraceError(f"{region.path}: does not record for a trace")
    return trace
