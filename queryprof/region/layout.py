"""The layout of a region: its tables and columns, as described in the region itself."""

from __future__ import annotations

import struct
from operator import itemgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

SIZES = {"H": 2, "I": 4, "i": 4, "q": 8, "Q": 8, "d": 8, "f": 4, "t": 4, "B": 1, "s": 1}
"""The size of a value in bytes, by the type code of its column. These are codes of `struct`; "t" is
the number of a text.
"""


class RowColumn:
    """A column of a table: its `struct` code, its offset in a row, its size in bytes."""

    __slots__ = ("at", "bytes", "code", "name")

    def __init__(self, text: str) -> None:
        name, code, at, size = text.split(":")
        self.name, self.code, self.at, self.bytes = name, code, int(at), int(size)
        if code not in SIZES or self.bytes % SIZES[code] or not self.bytes:
            raise ValueError(f"column {text!r}")


class RegionTable:
    """A table: its position in the region, and the columns of its rows."""

    __slots__ = ("_decoders", "at", "capacity", "columns", "name", "row_bytes")

    def __init__(self, line: str) -> None:
        self.name, at, row_bytes, capacity, *columns = line.split(" ")
        self.at, self.row_bytes, self.capacity = int(at), int(row_bytes), int(capacity)
        self._decoders: dict[tuple[str, ...], struct.Struct] = {}
        self.columns = {column.name: column for column in map(RowColumn, columns)}
        if (
            self.at < 0
            or self.row_bytes < 1
            or self.capacity < 0
            or any(
                column.at < 0 or column.at + column.bytes > self.row_bytes
                for column in self.columns.values()
            )
        ):
            raise ValueError(f"table {self.name}")

    def decoder(self, names: Sequence[str]) -> struct.Struct:
        """Return a struct that unpacks these columns, given in the row's order.

        Columns with several values are unpacked as bytes.
        """
        known = self._decoders.get(tuple(names))
        if known is not None:
            return known
        at, code = 0, "<"
        for name in names:
            column = self.columns[name]
            code += f"{column.at - at}x"
            many = column.bytes != SIZES[column.code]
            code += f"{column.bytes}s" if many else column.code.replace("t", "I")
            at = column.at + column.bytes
        decoder = self._decoders[tuple(names)] = struct.Struct(code + f"{self.row_bytes - at}x")
        return decoder

    def unpack_rows(self, rows: bytes, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Return these columns of the rows."""
        in_order = sorted(set(names), key=lambda name: self.columns[name].at)
        found = self.decoder(in_order).iter_unpack(rows)
        if in_order == list(names):
            return found
        return map(itemgetter(*[in_order.index(name) for name in names]), found)


MAX_DESCRIPTIONS = 16
"""Size of the cache. All regions of one queryprof on one machine have the same description."""

_descriptions: dict[bytes, tuple[RegionTable, ...]] = {}


def parse_tables(description: bytes) -> tuple[RegionTable, ...]:
    """Parse a description into tables, the head first. Raises ValueError."""
    known = _descriptions.get(description)
    if known is None:
        known = tuple(map(RegionTable, description.decode("ascii").splitlines()))
        if len(_descriptions) >= MAX_DESCRIPTIONS:
            _descriptions.clear()
        _descriptions[description] = known
    return known
