"""Convert regions, the memory of a recording, to a trace.

A killed process leaves calls that are not in its sums. This module adds these calls, as the core
would have done (queryprof.region.pending).
"""

from __future__ import annotations

import json
import sqlite3
import struct

from queryprof.collect.recent_calls import CALLS_IN_FILE, CallChoice
from queryprof.collect.region_addition import RegionAddition
from queryprof.core.wall_clock import unix_ns
from queryprof.errors import TraceError
from queryprof.program.source_facts import SourceFacts, is_from_this_boot
from queryprof.region.identity import region_facts, region_identity
from queryprof.region.pending import aggregate_rows
from queryprof.region.region import ENDED, RECORDS
from queryprof.region.region_files import is_living
from queryprof.trace.declaration import LAST, MOST, SUM
from queryprof.trace.tables import TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from queryprof.region.region import Region
    from queryprof.trace.processes import Identity
    from queryprof.trace.store import TraceStore


class RegionConversion:
    """Adds regions to a trace, each in a separate transaction unless one is open.

    Do not use a RegionConversion after an error: it may have ids that are not in the trace.

    Args:
        store: the trace's store.
        block_unix_ns: start and end of the recorded block; None for the process's whole recording.
        calls: which of the newest calls of each process to add.
    """

    def __init__(
        self,
        store: TraceStore,
        block_unix_ns: tuple[int, int] | None = None,
        calls: CallChoice = CALLS_IN_FILE,
    ) -> None:
        self.store = store
        self._calls = calls
        self._block_unix_ns = block_unix_ns
        self._processes: dict[Identity, int] = {}
        self._sources = SourceFacts()

    def add(self, region: Region, is_clean: bool | None = None) -> int:
        """Add a region and return the id of its process.

        Args:
            is_clean: whether the process ended by itself; None to use the region's own state.

        Raises:
            TraceError: the region holds values that no recording produces.
            sqlite3.OperationalError: the trace cannot be written.
        """
        with self.store.transaction():
            return self._add(region, is_clean)

    def _add(self, region: Region, is_clean: bool | None) -> int:
        facts = region_facts(region)
        try:
            identity = region_identity(region)
            known = self._processes.get(identity)
            values = _process_values(region, facts, is_clean)
            if self._block_unix_ns:
                start, end = self._block_unix_ns
                values = {**values, "start_unix_ns": start, "end_unix_ns": end}
            if known is None:
                row = [values[name] for name in TABLE["process"].names]
                (known,) = self.store.add("process", [row])
                self._processes[identity] = known
            else:
                self.store.merge_into_row("process", known, (SUM, MOST, LAST), values)
            aggregates = aggregate_rows(region)
            # the names come after the sums: a running process may have added names
            region.read_head()
            cells = dict(facts.get("cells", {}))
            addition = RegionAddition(self.store, region, known, tuple(facts["operations"]), cells)
            end_unix_ns = int(str(values["end_unix_ns"]))
            addition.add(aggregates, end_unix_ns)
            if self._calls.limit and (self._calls.in_windows or not region["window_ns"]):
                addition.add_recent_calls(self._calls, bool(values["clean_end"]))
            if is_from_this_boot(region):
                self.store.add("source", self._sources.rows_of(addition.own_files, end_unix_ns))
        except sqlite3.OperationalError:
            raise
        except (
            LookupError,
            TypeError,
            ValueError,
            ArithmeticError,
            struct.error,
            sqlite3.Error,
        ) as e:
            raise TraceError(f"{region.path or 'the recording'}: is damaged: {e}") from e
        return known


def _process_values(
    region: Region, facts: Mapping[str, Any], is_clean: bool | None
) -> Mapping[str, object]:
    clean = region.state == ENDED if is_clean is None else is_clean
    known = {name: facts.get(name) for name in TABLE["process"].names}
    return {
        **known,
        "argv": json.dumps(facts["arguments"]),
        "unmeasured": None if facts.get("unmeasured") is None else json.dumps(facts["unmeasured"]),
        "end_unix_ns": _end_unix_ns(region, facts),
        "window_start_unix_ns": region["part_start_unix_ns"] if region["window_ns"] else None,
        "lost_windows": region["lost_windows"] if region["window_ns"] else None,
        "clean_end": int(clean),
        "flush_ns": region["own_ns"],
        "folded_statements": region["folded_statements"],
        "folded_calls": region["folded_calls"],
        "read_bytes": _without_own_bytes(facts.get("read_bytes"), region["own_read_bytes"]),
        "written_bytes": _without_own_bytes(
            facts.get("written_bytes"), region["own_written_bytes"]
        ),
        "lost_counters": region["lost_counters"],
        "unseen_files": region["unseen_files"],
        "unasked_plans": region["unasked_plans"],
    }


def _without_own_bytes(bytes_of_all: object, own: int) -> int | None:
    return max(0, bytes_of_all - own) if isinstance(bytes_of_all, int) else None


def _end_unix_ns(region: Region, facts: Mapping[str, object]) -> int:
    """Return when the recording in a region ended.

    For a running or killed process, this is its last sign of activity, because the stored end may
    belong to an earlier block.
    """
    noted = facts.get("end_unix_ns")
    if region.state == ENDED and isinstance(noted, int) and noted:
        return noted
    return _last_sign_unix_ns(region, facts)


def _last_sign_unix_ns(region: Region, facts: Mapping[str, object]) -> int:
    """Return the last sign of activity of a process that did not record its end."""
    ends = [
        region.unix_ns(started + ticks)
        for started, ticks in region.rows("calls", ("started_ticks", "ticks"))
        if started
    ]
    ends += [
        region.unix_ns(last) for (last,) in region.rows("calls", ("pending_last_ticks",)) if last
    ]
    if region.path and region.state == RECORDS and is_living(region):
        return unix_ns()
    start = facts.get("start_unix_ns")  # the process may have done nothing since
    return max([int(region["alive_unix_ns"]), *([start] if isinstance(start, int) else []), *ends])
