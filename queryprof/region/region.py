"""The memory of a recording, to be read: this process's own, or a file that a process shares or has
left behind (see queryprof/core/region.h).

The region describes the rows of its tables. What is read from a file is not trusted: nothing is
read beyond its end.
"""

from __future__ import annotations

import os
import stat
import struct
from contextlib import contextmanager

from queryprof.core import _core
from queryprof.errors import TraceError
from queryprof.given_file import what_is
from queryprof.region.layout import SIZES, Table, described

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

MAGIC = b"QPREGION"
VERSION = 4
START = struct.Struct("<8sIII")
"""Magic, version, where the description is, how long it is."""

RECORDS, ENDED, PART = 1, 2, 3
"""States: the region is written to, or its process was killed; its process ended it (the last part
of a recording in windows is in that state, too); it is a part of a recording that goes on in
another region."""

NONE = 0
"""The number of no text: the empty one."""
FULL = 0xFFFFFFFF
"""The number of a text that there was no room for, and of an unknown line."""

HEADER: dict[type, tuple[str, ...]] = {
    int: (
        "pid",
        "pid_namespace",
        "start_time",
        "state",
        "turn_unix_ns",
        "part_begun",
        "part_ended",
        "lost_windows",
        "window_ns",
        "part_start_unix_ns",
    ),
    bytes: ("boot", "counts"),
}
"""The values of the header that are read first."""

LONGEST_DESCRIPTION = 1 << 16
TRIES = 20
"""The most readings of a row that is being changed."""

LARGEST_FILE = 1 << 28


class Region:
    """The tables of one region.

    Args:
        memory: this process's own; or
        path: of a file.

    Attributes:
        state: RECORDS, ENDED or PART.
        goes_on: a later part, or the region, has what went on at its end.
        file: its descriptor; -1: there is none.

    Raises:
        TraceError: the file cannot be read, or is no region.
    """

    def __init__(self, memory: memoryview | None = None, path: str = "") -> None:
        self._memory = memory
        self.path = path
        self.file = -1
        if memory is None:
            try:
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                self.file = os.open(path, flags)
            except OSError as error:
                raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
            found = os.fstat(self.file)
            if not stat.S_ISREG(found.st_mode):  # a pipe is waited for
                os.close(self.file)
                raise TraceError(f"{path}: cannot be read: {what_is(found)}")
        try:
            self._bytes = len(memory) if memory is not None else os.fstat(self.file).st_size
            self._read_description()
        except (
            ValueError,
            LookupError,
            TypeError,
            ArithmeticError,
            struct.error,
            OSError,
        ) as error:
            self.close()
            raise TraceError(f"{path}: is no recording of queryprof") from error
        except TraceError:
            self.close()
            raise
        self.goes_on = self.state == PART
        self.facts: tuple[int, dict[str, Any]] | None = None  # by the number of their text
        self._texts = b""
        self._known: dict[int, str] = {NONE: ""}

    def close(self) -> None:
        """Closes the file."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1

    def _read_description(self) -> None:
        magic, version, at, length = START.unpack(self._read(0, START.size))
        if magic == MAGIC and version != VERSION:
            raise TraceError(
                f"{self.path}: was recorded by another version of queryprof, which can read it"
            )
        if magic != MAGIC or length > LONGEST_DESCRIPTION:
            raise ValueError("no region")
        if self._bytes > LARGEST_FILE:
            raise ValueError("too large")
        self._head, *tables = described(self._read(at, length))
        self.tables = {table.name: table for table in tables}
        if self._head.at:  # it begins with the magic number
            raise ValueError("its header is elsewhere")
        if self._head.row_bytes > min(self._bytes, LONGEST_DESCRIPTION):
            raise ValueError("its header is too long")
        self._order = [table.name for table in tables]
        for table in tables:
            if table.at + table.row_bytes * table.capacity > self._bytes:
                raise ValueError("it is cut off")
        self.read_head()

    def read_head(self) -> None:
        """Reads the values of the whole recording again."""
        names = sorted(self._head.columns, key=lambda name: self._head.columns[name].at)
        row = self._read(self._head.at, self._head.row_bytes)
        self._values = dict(zip(names, self._head.decoder(names).unpack(row), strict=True))
        for kind, wanted in HEADER.items():
            if not all(isinstance(self._values[one], kind) for one in wanted):
                raise ValueError("its header is of other kinds")
        counts = self.values("counts", "I")
        if len(counts) != len(self._order):
            raise ValueError("it does not count its tables")
        self.counts = {
            name: min(count, self.tables[name].capacity)
            for name, count in zip(self._order, counts, strict=False)
        }
        self.state = int(self._values["state"])
        self._histograms: tuple[list[tuple[int, ...]], list[tuple[int, ...]]] | None = None

    def __getitem__(self, name: str) -> Any:
        """A value of the whole recording."""
        return self._values[name]

    def values(self, name: str, code: str) -> tuple[Any, ...]:
        """Several values of the whole recording."""
        packed = self._values[name]
        return struct.unpack(f"<{len(packed) // SIZES[code]}{code}", packed)

    def _read(self, at: int, length: int) -> bytes:
        if self._memory is not None:
            return bytes(self._memory[at : at + length])
        read = os.pread(self.file, length, at)
        _core.memory_fence()  # a later reading is later, on every processor
        return read

    def packed(self, name: str) -> bytes:
        """All rows of a table, as bytes."""
        table = self.tables[name]
        length = table.row_bytes * self.counts[name]
        packed = self._read(table.at, length)
        return packed[: len(packed) - len(packed) % table.row_bytes]

    def rows(self, name: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """These columns of all rows of a table."""
        return self.tables[name].unpacked(self.packed(name), columns)

    def whole_rows(self, name: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """As `rows`, but no row that was read while it was being changed: its sequence number is
        odd then, or differs when it is read again. One that changes all the time is taken as it is.
        """
        table = self.tables[name]
        packed = self.packed(name)
        again = self.packed(name) if self._memory is None else packed
        changing = self.changing(name, packed, again)
        if changing:
            rows = bytearray(again)
            for place in changing:
                at = place * table.row_bytes
                rows[at : at + table.row_bytes] = self._whole_row(table, place)
            again = bytes(rows)
        return list(table.unpacked(again, columns))

    def changing(self, name: str, packed: bytes, again: bytes) -> set[int]:
        """The rows of a table that changed between two readings, or were half changed."""
        table = self.tables[name]
        numbers = table.decoder(("sequence",)).iter_unpack(again)
        found = {place for place, (number,) in enumerate(numbers) if number & 1}
        if again != packed:
            size = table.row_bytes
            found |= {
                at // size
                for at in range(0, len(again), size)
                if again[at : at + size] != packed[at : at + size]
            }
        return found

    def _whole_row(self, table: Table, place: int) -> bytes:
        at = table.at + table.row_bytes * place
        before = self._read(at, table.row_bytes)
        for _ in range(TRIES):
            now = self._read(at, table.row_bytes)
            if now == before and not self.changing(table.name, before, now):
                break
            before = now
        return now

    def row(self, name: str, number: int, columns: Sequence[str]) -> tuple[Any, ...]:
        """These columns of one row, which must exist."""
        table = self.tables[name]
        packed = self._read(table.at + table.row_bytes * number, table.row_bytes)
        return table.decoder(columns).unpack(packed)

    def text(self, number: int) -> str:
        """A text; the empty one if it is not there."""
        known = self._known.get(number)
        if known is None:
            length = int.from_bytes(self._text_bytes(number, 4), "little")
            known = self._text_bytes(number + 4, length).decode("utf-8", "replace")
            self._known[number] = known
        return known

    def _text_bytes(self, at: int, length: int) -> bytes:
        if self._memory is not None:
            return self._read(self.tables["texts"].at + at, length)
        if at + length > len(self._texts):
            self._texts = self.packed("texts")
        return self._texts[at : at + length]

    def ns(self, ticks: int) -> int:
        """Ticks of the recording's clock in nanoseconds."""
        return int(ticks * self._values["ns_per_tick"])

    def unix_ns(self, ticks: int) -> int:
        """The Unix time, in ns, of a tick of the recording's clock."""
        since = ticks - self._values["base_ticks"]
        return int(self._values["base_unix_ns"]) + int(since * self._values["ns_per_tick"])

    def histogram(self, spread: int, buckets: bytes, counts: bytes) -> list[tuple[int, int]]:
        """(bucket, count) pairs of a histogram."""
        if not spread:
            return [
                pair for pair in zip(_numbers(buckets), _numbers(counts), strict=True) if pair[1]
            ]
        spreads, octaves = self._spread_histograms()
        found = []
        for octave, number in enumerate(spreads[spread - 1] if spread <= len(spreads) else ()):
            for place, count in enumerate(
                octaves[number - 1] if 0 < number <= len(octaves) else ()
            ):
                if count:
                    found.append((octave * len(octaves[0]) + place, count))
        return found

    def _spread_histograms(self) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        if self._histograms is None:
            self.read_head()  # a row that was just read may refer to new ones
            spreads = [
                struct.unpack(f"<{len(packed) // 2}H", packed)
                for (packed,) in self.rows("spreads", ("octaves",))
            ]
            octaves = [
                struct.unpack(f"<{len(packed) // 4}I", packed)
                for (packed,) in self.rows("octaves", ("counts",))
            ]
            self._histograms = (spreads, octaves)
        return self._histograms


def is_part(path: str) -> bool:
    """Whether a regular file is a region's, or a part of a recording."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


@contextmanager
def opened_region(path: str) -> Iterator[Region]:
    """The region in a file, for as long as the block runs."""
    region = Region(path=path)
    try:
        yield region
    finally:
        region.close()


@contextmanager
def claimed_region(path: str) -> Iterator[Region | None]:
    """The region in a file, locked for this process to read and remove; None: another one has it.

    Raises:
        TraceError: it cannot be read, or is no region.
    """
    import fcntl

    with opened_region(path) as region:
        try:
            fcntl.flock(region.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_there = os.path.samestat(os.fstat(region.file), os.lstat(path))
        except OSError:
            is_there = False
        yield region if is_there else None


def _numbers(packed: bytes) -> tuple[int, ...]:
    """The numbers of a histogram that is in a row."""
    return struct.unpack(f"<{len(packed) // 2}H", packed)
