"""Read the program's source: its loops, lines and uses of rows.

A trace may name any file, so this module uses a file only if its hash is in the trace.
"""

from __future__ import annotations

import io
import os
import tokenize
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256

from queryprof.model import Frame
from queryprof.program.source_callbacks import driver_callbacks
from queryprof.program.source_columns import only_attributes
from queryprof.program.source_facts import MAX_FILES, read_source_file
from queryprof.program.source_loops import (
    creates_tasks,
    innermost_loop,
    loop_sleeps,
    needs_previous_row,
)
from queryprof.program.source_tables import tables_of_classes
from queryprof.program.source_uses import (
    attributes_appended_to,
    only_tests_existence,
    reads_values,
    row_reduction,
)

NO_HASHES: frozenset[str] = frozenset()
LINES_AROUND = 3
MAX_LINE_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Sources:
    """Source files with their hashes (see `Profile.sources`), and a notebook's cells by name.

    Only the process that runs a notebook knows its cells. A cell has two texts: the Python code,
    and the text as typed.
    """

    hashes: Mapping[str, Collection[str]]
    cells: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def loop_at(self, frame: Frame, called: str = "") -> Frame | None:
        """Return the innermost loop around a frame's call (see `innermost_loop`); None without the
        source.
        """
        return innermost_loop(self._unchanged_text(frame.file), frame, called)

    def makes_tasks(self, frame: Frame) -> bool | None:
        """Return whether a frame's line starts concurrent tasks; None without the source."""
        text = self._unchanged_text(frame.file)
        return creates_tasks(text, frame.line) if text else None

    def needs_previous_row(self, frame: Frame) -> bool:
        """Return whether a query in a loop needs the row of the previous query; False without the
        source.
        """
        text = self._unchanged_text(frame.file)
        return bool(text) and needs_previous_row(text, frame.line)

    def loop_sleeps(self, frame: Frame) -> bool:
        """Return whether each iteration of a loop sleeps; False without the source."""
        text = self._unchanged_text(frame.file)
        return bool(text) and loop_sleeps(text, frame.line)

    def attributes_appended_to(self, frame: Frame) -> frozenset[str]:
        """Return the attributes that a frame's line only appends to; empty without the source."""
        text = self._unchanged_text(frame.file)
        return attributes_appended_to(text, frame.line) if text else frozenset()

    def row_reduction(self, frame: Frame, attribute: str = "", is_lazy: bool = False) -> str:
        """Return the kind of reduction of the rows of a frame's line (see source_uses); "" without
        the source.
        """
        text = self._unchanged_text(frame.file)
        return row_reduction(text, frame.line, attribute, is_lazy) if text else ""

    def reads_values(self, frame: Frame) -> bool:
        """Return whether a frame's line asks for values, not for objects; False without the
        source.
        """
        text = self._unchanged_text(frame.file)
        return bool(text) and reads_values(text, frame.line)

    def only_tests_existence(self, frame: Frame) -> bool:
        """Return whether the program only tests if the count from a frame's line is 0; False
        without the source.
        """
        text = self._unchanged_text(frame.file)
        return bool(text) and only_tests_existence(text, frame.line)

    def driver_callbacks(self) -> tuple[str, ...]:
        """Return where the program gives functions to its driver ("set_profile() app.py:7")."""
        return tuple(
            f"{name} {os.path.basename(file)}:{line}"
            for file in sorted({*self.hashes, *self.cells})[:MAX_FILES]
            for line, name in driver_callbacks(self._unchanged_text(file))
        )

    def only_attributes(self, frame: Frame) -> tuple[str, ...]:
        """Return the attributes that the loop over a line's rows reads (see source_columns); empty
        without the source.
        """
        text = self._unchanged_text(frame.file)
        return only_attributes(text, frame.line) if text else ()

    def table_of_class(self, name: str) -> str:
        """Return the table that a class names for an object mapper; "" if unknown, or if classes
        with this name have several tables.
        """
        files = sorted({*self.hashes, *self.cells})[:MAX_FILES]
        named = {tables_of_classes(self._unchanged_text(file)).get(name, "") for file in files}
        return named.pop() if len(named := named - {""}) == 1 else ""

    def declares_table(self, table: str) -> bool:
        """Return whether a class of the program names a table, in any case."""
        files = sorted({*self.hashes, *self.cells})[:MAX_FILES]
        tables = (tables_of_classes(self._unchanged_text(file)).values() for file in files)
        return any(table.lower() == name.lower() for names in tables for name in names)

    def lines_around(self, frame: Frame) -> list[tuple[int, str]] | None:
        """Return the numbers and texts of the lines around a frame's line; None without the
        source.
        """
        cell = self.cells.get(frame.file)
        lines = (cell[1] if cell else self._unchanged_text(frame.file)).splitlines()
        first, last = max(1, frame.line - LINES_AROUND), min(len(lines), frame.line + LINES_AROUND)
        if not frame.line:
            return None
        return [
            (number, lines[number - 1][:MAX_LINE_CHARACTERS]) for number in range(first, last + 1)
        ] or None

    def _unchanged_text(self, file: str) -> str:
        """Return a file's text, or "" if the file is missing or has changed."""
        if file in self.cells:
            return self.cells[file][0]
        hashes = self.hashes.get(file, NO_HASHES)
        text, digest = _read_source(file) if hashes else ("", "")
        return text if digest in hashes else ""


@cache
def _read_source(file: str) -> tuple[str, str]:
    """Return a file's text and hash; ("", "") if it is not a readable source file."""
    found = read_source_file(file)
    if found is None:
        return "", ""
    content = found[0]
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
    except (SyntaxError, ValueError, LookupError):
        return "", ""
    return text, sha256(content, usedforsecurity=False).hexdigest()
