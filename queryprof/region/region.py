"""Read the memory of a recording: of this process, or of another process through a file.

See queryprof/core/memory/region.h. The region describes the rows of its tables. The content of a
file is not trusted: nothing beyond its end is read.
"""

from __future__ import annotations

import os
import stat
import struct
from contextlib import contextmanager

from queryprof.core import _core
from queryprof.errors import TraceError
from queryprof.given_file import content_of, what_is
from queryprof.region.file_lock import lock_file
from queryprof.region.layout import SIZES, RegionTable, parse_tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

MAGIC = b"QPREGION"
VERSION = 4
START = struct.Struct("<8sIII")
"""Magic, version, offset and length of the description."""

RECORDS, ENDED, PART = 1, 2, 3
"""States of a region. RECORDS: it is being written, or its process was killed. ENDED: its process
ended it, or it is the last part of a recording in windows. PART: its recording continues in another
region.
"""

NONE = 0
"""The number of the empty text."""
FULL = 0xFFFFFFFF
"""The number of an unknown line, and of a text for which there was no room."""

HEADER: dict[type, tuple[str, ...]] = {
    int: (
        "pid",
        "pid_namespace",
        "start_time",
        "state",
        "alive_unix_ns",
        "part_begun",
        "part_ended",
        "lost_windows",
        "window_ns",
        "part_start_unix_ns",
    ),
    bytes: ("boot", "counts"),
}
"""Names of values that the header must have, by type."""

MAX_LAYOUT_BYTES = 1 << 16
"""Maximum size of the description of the columns, in bytes."""
MAX_READINGS = 20
"""Maximum number of readings of a row that is being changed."""

MAX_FILE_BYTES = 1 << 28


class IncompleteError(TraceError):
    """A copy on disk has no header yet: the process writes the header last."""


class Region:
    """The tables of one region.

    Args:
        memory: this process's own memory.
        path: a file. Give either `memory` or `path`.

    Attributes:
        state: RECORDS, ENDED or PART.
        continues: whether a later part, or the region, contains the executions that were unfinished
            at the end of this region.
        file: the descriptor; -1 without a file.

    Raises:
        TraceError: the file cannot be read, or is not a region.
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
            if not stat.S_ISREG(found.st_mode):  # reading a pipe would wait
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
            is_begun = isinstance(error, ValueError) and not any(self._read(0, START.size))
            self.close()
            if is_begun:
                raise IncompleteError(f"{path}: an incomplete copy of a recording") from error
            raise TraceError(f"{path}: not a queryprof recording") from error
        except TraceError:
            self.close()
            raise
        self.continues = self.state == PART
        self.facts: tuple[int, dict[str, Any]] | None = None  # by the offset of the text
        self._texts = b""
        self._known: dict[int, str] = {NONE: ""}

    def close(self) -> None:
        """Close the file."""
        if self.file >= 0:
            os.close(self.file)
            self.file = -1

    def _read_description(self) -> None:
        magic, version, at, length = START.unpack(self._read(0, START.size))
        if magic == MAGIC and version != VERSION:
            raise TraceError(
                f"{self.path}: was recorded by another version of queryprof; read it with that"
                " version"
            )
        if magic != MAGIC or length > MAX_LAYOUT_BYTES:
            raise ValueError("no region")
        if self._bytes > MAX_FILE_BYTES:
            raise ValueError("too large")
        self._head, *tables = parse_tables(self._read(at, length))
        self.tables = {table.name: table for table in tables}
        if self._head.at:  # the header begins with the magic number
            raise ValueError("its header is elsewhere")
        if self._head.row_bytes > min(self._bytes, MAX_LAYOUT_BYTES):
            raise ValueError("its header is too long")
        self._order = [table.name for table in tables]
        for table in tables:
            if table.at + table.row_bytes * table.capacity > self._bytes:
                raise ValueError("it is truncated")
        self.read_head()

    def read_head(self) -> None:
        """Read the values of the header again."""
        names = sorted(self._head.columns, key=lambda name: self._head.columns[name].at)
        row = self._read(self._head.at, self._head.row_bytes)
        self._values = dict(zip(names, self._head.decoder(names).unpack(row), strict=True))
        for kind, wanted in HEADER.items():
            if not all(isinstance(self._values[one], kind) for one in wanted):
                raise ValueError("its header has values of unexpected types")
        counts = self.header_values("counts", "I")
        if len(counts) != len(self._order):
            raise ValueError("its row counts do not match its tables")
        self.counts = {
            name: min(count, self.tables[name].capacity)
            for name, count in zip(self._order, counts, strict=False)
        }
        self.state = int(self._values["state"])
        self._histograms: tuple[list[tuple[int, ...]], list[tuple[int, ...]]] | None = None

    def __getitem__(self, name: str) -> Any:
        """Return a value of the header."""
        return self._values[name]

    def header_values(self, name: str, code: str) -> tuple[Any, ...]:
        """Return several values of the header."""
        packed = self._values[name]
        return struct.unpack(f"<{len(packed) // SIZES[code]}{code}", packed)

    def _read(self, at: int, length: int) -> bytes:
        if self._memory is not None:
            return bytes(self._memory[at : at + length])
        read = os.pread(self.file, length, at)
        _core.memory_fence()  # keeps the order of readings on every processor
        return read

    def packed_rows(self, name: str) -> bytes:
        """Return all rows of a table as bytes."""
        table = self.tables[name]
        length = table.row_bytes * self.counts[name]
        packed = self._read(table.at, length)
        return packed[: len(packed) - len(packed) % table.row_bytes]

    def rows(self, name: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield these columns of all rows of a table."""
        return self.tables[name].unpack_rows(self.packed_rows(name), columns)

    def whole_rows(self, name: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """Like `rows`, but rows that were read during a change are read again.

        During a change, the sequence number of a row is odd, or differs in a second reading. A row
        that changes all the time is used as is.
        """
        table = self.tables[name]
        packed = self.packed_rows(name)
        again = self.packed_rows(name) if self._memory is None else packed
        changing = self.changed_rows(name, packed, again)
        if changing:
            rows = bytearray(again)
            for place in changing:
                at = place * table.row_bytes
                rows[at : at + table.row_bytes] = self._whole_row(table, place)
            again = bytes(rows)
        return list(table.unpack_rows(again, columns))

    def changed_rows(self, name: str, packed: bytes, again: bytes) -> set[int]:
        """Return the rows that changed between two readings, or were being changed."""
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

    def _whole_row(self, table: RegionTable, place: int) -> bytes:
        at = table.at + table.row_bytes * place
        before = self._read(at, table.row_bytes)
        for _ in range(MAX_READINGS):
            now = self._read(at, table.row_bytes)
            if now == before and not self.changed_rows(table.name, before, now):
                break
            before = now
        return now

    def row(self, name: str, number: int, columns: Sequence[str]) -> tuple[Any, ...]:
        """Return these columns of one row, which must exist."""
        table = self.tables[name]
        packed = self._read(table.at + table.row_bytes * number, table.row_bytes)
        return table.decoder(columns).unpack(packed)

    def text(self, number: int) -> str:
        """Return a text, or "" if it does not exist."""
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
            self._texts = self.packed_rows("texts")
        return self._texts[at : at + length]

    def ns(self, ticks: int) -> int:
        """Convert ticks of the recording's clock to nanoseconds."""
        return int(ticks * self._values["ns_per_tick"])

    def unix_ns(self, ticks: int) -> int:
        """Convert a time of the recording's clock to Unix time in ns."""
        since = ticks - self._values["base_ticks"]
        return int(self._values["base_unix_ns"]) + int(since * self._values["ns_per_tick"])

    def histogram(self, spread: int, buckets: bytes, counts: bytes) -> list[tuple[int, int]]:
        """Return the (bucket, count) pairs of a histogram."""
        if not spread:
            return [
                pair
                for pair in zip(
                    _histogram_numbers(buckets), _histogram_numbers(counts), strict=True
                )
                if pair[1]
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
            self.read_head()  # a row that was just read may refer to new rows
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
    """Return whether a regular file is a region or a part of a recording."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


@contextmanager
def opened_region(path: str) -> Iterator[Region]:
    """Open the region in a file for the duration of the block."""
    region = Region(path=path)
    try:
        yield region
    finally:
        region.close()


@contextmanager
def claimed_region(path: str) -> Iterator[Region | None]:
    """Open and lock the region in a file, to read and remove it. None if another process has locked
    the file.

    Raises:
        TraceError: the file cannot be read, or is not a region.
    """
    with opened_region(path) as region:
        try:
            is_there = lock_file(region.file) and os.path.samestat(
                os.fstat(region.file), os.lstat(path)
            )
        except OSError:
            is_there = False
        yield region if is_there else None


def has_header(path: str) -> bool:
    """Return whether a copy on disk has its header, which a process writes last. True if the file
    is not regular or cannot be read.
    """
    try:
        return any(content_of(path, START.size))
    except OSError:
        return True


def _histogram_numbers(packed: bytes) -> tuple[int, ...]:
    """Return the numbers of a histogram that is stored in the row."""
    return struct.unpack(f"<{len(packed) // 2}H", packed)
