"""Convert a region's rows to rows of a trace.

A trace column takes the region's column of the same name, or of the name in RENAMED. The region's
column may be the number of another row (without `_id`), a time in ns, or a time in ticks, which
becomes ns.
"""

from __future__ import annotations

from queryprof.core.systems import SYSTEMS
from queryprof.region.names import CODE_KINDS
from queryprof.region.region import FULL, NONE
from queryprof.trace.tables import TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Any

    from queryprof.region.region import Region
    from queryprof.trace.store import TraceStore

LINE = ("function", "file", "line", "kind", "first_line")
NO_PATH = 0

RENAMED = {"frame_id": "line"}
"""Columns with another name in a region."""


class _Ids(dict[int, int]):
    """A mapping from numbers to ids that creates missing ids."""

    def __init__(self, make: Callable[[int], int]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, number: int) -> int:
        found = self[number] = self._make(number)
        return found


class RegionRows:
    """Converts the rows of one region to rows of a trace.

    Numbers of the region become ids of the trace. Files of notebook cells become the cells' names.
    """

    def __init__(
        self,
        store: TraceStore,
        region: Region,
        process: int,
        operations: tuple[str, ...],
        cells: Mapping[str, str],
    ) -> None:
        self._store = store
        self._region = region
        self._process = process
        self._operations = operations
        self._cells = cells
        self._statement_rows = list(region.rows("statements", ("text", "note", "system")))
        self._line_rows = list(region.rows("lines", LINE))
        self._stack_rows = list(region.rows("stacks", ("outer", "line")))
        self._span_names = [name for (name,) in region.rows("spans", ("name",))]
        self._thread_names = [name for (name,) in region.rows("threads", ("name",))]
        self._frames_of: dict[int, str] = {NO_PATH: ""}
        self.own_files: set[str] = set()
        """Files of the program's own code to which rows refer."""
        self._ids = {
            "statement": _Ids(self._statement),
            "frame": _Ids(self._line),
            "stack": _Ids(self._stack),
            "span": _Ids(self._span),
            "thread": _Ids(self._thread),
        }
        """By table: ids in the trace, by the region's row numbers."""

    def _statement(self, number: int) -> int:
        text, note, system = self._row(self._statement_rows, number, (NONE, NONE, 0))
        return self._store.id(
            "statement",
            self._region.text(text) or "(unknown)",
            self._region.text(note) if note != NONE else None,
            SYSTEMS[system] or None if system < len(SYSTEMS) else None,
        )

    def _line(self, number: int) -> int:
        row = self._row(self._line_rows, number, (NONE, NONE, 0, 1, 0))
        function, file, line, code_class, first_line = row
        kind = CODE_KINDS[min(code_class, len(CODE_KINDS) - 1)]
        path = self._region.text(file)
        cell = self._cells.get(path)
        if cell is not None:
            path = cell
        elif kind == "user":
            self.own_files.add(path)
        return self._store.id("frame", self._region.text(function), path, line, kind, first_line)

    def _stack(self, number: int) -> int:
        return self._store.id("stack", self._frames(number))

    def _frames(self, number: int) -> str:
        """Return the ids of a stack's frames, innermost first."""
        missing = []
        while number not in self._frames_of:
            outer, line = self._row(self._stack_rows, number, (NO_PATH, 0))
            missing.append((number, line))
            if outer >= number:  # invalid, because an inner row comes after its outer row
                outer = NO_PATH
            number = outer
        frames = self._frames_of[number]
        for inner, line in reversed(missing):
            frame = str(self._ids["frame"][line])
            frames = self._frames_of[inner] = f"{frame},{frames}" if frames else frame
        return frames

    def _span(self, number: int) -> int:
        name = self._row(self._span_names, number, NONE)
        return self._store.id("span", self._region.text(name))

    def _thread(self, number: int) -> int:
        name = self._row(self._thread_names, number, NONE)
        return self._store.id("thread", self._process, self._region.text(name))

    @staticmethod
    def _row(rows: Sequence[Any], number: int, otherwise: Any) -> Any:
        return rows[number] if number < len(rows) else otherwise

    def _operation(self, number: int) -> str:
        return self._operations[number] if number < len(self._operations) else "execute"

    def _text_or(self, number: int) -> str | None:
        return None if number == FULL else self._region.text(number)

    def _rows(
        self, source: str, table: str, *further: str, **given: Callable[[Any], Any]
    ) -> Iterator[tuple[list[Any], tuple[Any, ...]]]:
        """Yield the rows of a region's table in the trace's form, with further columns unchanged.

        Args:
            given: conversions for columns that need another conversion, by the region's column
                name.
        """
        return self._chosen_rows(source, table, None, further, given)

    def _chosen_rows(
        self,
        source: str,
        table: str,
        places: Collection[int] | None,
        further: tuple[str, ...] = (),
        given: Mapping[str, Callable[[Any], Any]] = {},
        left_out: tuple[str, ...] = (),
    ) -> Iterator[tuple[list[Any], tuple[Any, ...]]]:
        """Yield the rows at these places (None: all), without the trace's columns in `left_out`."""
        there = self._region.tables[source].columns
        names, makers = [], []
        for column in TABLE[table].columns:
            if column.name in left_out:
                continue
            name = RENAMED.get(column.name, column.name.removesuffix("_id"))
            make = given.get(name)
            if make is None and column.reference:
                make = self._ids[column.reference].__getitem__
            elif make is None and name == "operation":
                make = self._operation
            elif make is None and column.sql_type == "TEXT":
                make = self._region.text
            if name not in there:
                name, make = name.replace("_ns", "_ticks"), self._region.ns
            names.append(name)
            makers.append(make)
        width = len(names)
        rows = self._region.rows(source, (*names, *further))
        if places is not None:
            all_rows = list(rows)
            rows = iter([all_rows[place] for place in places])
        for row in rows:
            made = [
                value if make is None else make(value)
                for value, make in zip(row[:width], makers, strict=True)
            ]
            yield made, row[width:]
