"""The parts of a statement's time: waiting for locks, syncing, reading, writing, computing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from queryprof.analysis.call_sites import Place, Sites
from queryprof.model import Profile


@dataclass(slots=True)
class FileWorkSums:
    """Sums of SQLite's file operations and lock waits; times are in ns."""

    calls: int = 0
    lock_waits: int = 0
    lock_ns: int = 0
    max_lock_ns: int = 0
    syncs: int = 0
    sync_ns: int = 0
    read_bytes: int = 0
    read_ns: int = 0
    written_bytes: int = 0
    write_ns: int = 0

    def time_shares(self, self_ns: int) -> tuple[tuple[str, float], ...]:
        """Return each activity's share (0 to 1) of a statement's own time. The shares add up to
        1.
        """
        parts = {
            "waiting for a lock": self.lock_ns,
            "syncing": self.sync_ns,
            "reading": self.read_ns,
            "writing": self.write_ns,
        }
        whole = max(self_ns, sum(parts.values()), 1)
        parts["computing"] = whole - sum(parts.values())
        return tuple((name, ns / whole) for name, ns in parts.items())


def file_work_by_site(profile: Profile, sites: Sites) -> Mapping[tuple[str, Place], FileWorkSums]:
    """Return the file work of each statement at each call site. Statements without file work are
    omitted.
    """
    found: dict[tuple[str, Place], FileWorkSums] = {}
    for work in profile.file_work:
        sums = found.setdefault((work.statement, sites.place(work.path)), FileWorkSums())
        sums.calls += work.calls
        sums.lock_waits += work.lock_waits
        sums.lock_ns += work.lock_ns
        sums.max_lock_ns = max(sums.max_lock_ns, work.max_lock_ns)
        sums.syncs += work.syncs
        sums.sync_ns += work.sync_ns
        sums.read_bytes += work.read_bytes
        sums.read_ns += work.read_ns
        sums.written_bytes += work.written_bytes
        sums.write_ns += work.write_ns
    return found
