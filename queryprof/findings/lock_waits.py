"""Lock waits, grouped by the holder that caused them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from queryprof.analysis.call_sites import Sites
from queryprof.analysis.units import shorten
from queryprof.model import CallPath, Frame, LockEvent
from queryprof.sql.clauses import is_checkpoint

WAITED_NS = 10_000_000


@dataclass(slots=True)
class CausedWaits:
    """The waits that one holder caused. `own` is the number of waits in the thread that held the
    lock.
    """

    holder: LockEvent
    count: int = 0
    own: int = 0
    ns: int = 0
    longest_ns: int = 0
    waiters: set[str] = field(default_factory=set)
    places: set[tuple[str, CallPath]] = field(default_factory=set)
    callers: set[CallPath] = field(default_factory=set)
    """Callers of the line that took the lock, if their holds blocked other calls."""
    has_readers: bool = False
    are_checkpoints: bool = True

    def add_wait(self, wait: LockEvent, site: Frame | None, ns: int) -> None:
        """Add a wait at a call site. `ns` is the part of the wait that this holder caused."""
        self.count += 1
        self.own += wait.thread == self.holder.thread
        self.ns += ns
        self.longest_ns = max(self.longest_ns, ns)
        self.waiters.add(_event_in_words(wait, site))
        self.places.add((wait.statement, wait.path[:1]))
        is_reader = wait.statement.lstrip().upper().startswith(("SELECT", "WITH"))
        self.has_readers = self.has_readers or is_reader or self.holder.kind == "read"
        self.are_checkpoints = self.are_checkpoints and is_checkpoint(wait.statement)

    def add_callers(self, other: CausedWaits) -> None:
        """Add the waits that another caller of the same line caused."""
        self.count += other.count
        self.own += other.own
        self.ns += other.ns
        self.longest_ns = max(self.longest_ns, other.longest_ns)
        self.waiters |= other.waiters
        self.places |= other.places
        self.callers |= other.callers
        self.has_readers |= other.has_readers
        self.are_checkpoints &= other.are_checkpoints


def waits_by_caller(waits: Mapping[CallPath, CausedWaits]) -> Iterator[CausedWaits]:
    """Yield the waits that lock holders at one line caused: an item for each caller that caused
    long waits, and an item for all other callers.
    """
    rest: CausedWaits | None = None
    for found in waits.values():
        if found.ns >= WAITED_NS:
            yield found
        elif rest is None:
            rest = found
        else:
            rest.add_callers(found)
    if rest is not None:
        yield rest


def ranked_frame(path: CallPath, sites: Sites) -> Frame | None:
    """Return the frame that the report names for a call path. It skips database helpers."""
    return sites.site(path).frame


def _event_in_words(event: LockEvent, frame: Frame | None) -> str:
    where = f" {frame.file.rpartition('/')[2]}:{frame.line}" if frame else ""
    return f"{shorten(event.statement, 60)}{where}"
