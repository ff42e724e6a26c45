"""The program's source, where it is still what the recording saw: the loop that a line is in, the
lines around it. A trace may name any file: one is read only if its content has the hash that is in
the trace.
"""

from __future__ import annotations

import io
import tokenize
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256

from queryprof.model import Frame
from queryprof.program.source_facts import source_of
from queryprof.program.source_loops import loop_in, makes_tasks

NO_HASHES: frozenset[str] = frozenset()
AROUND = 3
LONGEST_LINE = 200


@dataclass(frozen=True, slots=True)
class Sources:
    """Source files by their hashes: see `Profile.sources`; and a notebook's cells by their names,
    as this process knows them: each as Python code, and as it was typed.
    """

    hashes: Mapping[str, Collection[str]]
    cells: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def loop_at(self, frame: Frame, called: str = "") -> Frame | None:
        """The innermost loop around a frame's call: see `loop_in`; None, too: the source is not
        there.
        """
        return loop_in(self._text(frame.file), frame, called)

    def makes_tasks(self, frame: Frame) -> bool | None:
        """Whether a frame's line makes tasks; None: the source is not there."""
        text = self._text(frame.file)
        return makes_tasks(text, frame.line) if text else None

    def lines_around(self, frame: Frame) -> list[tuple[int, str]] | None:
        """The lines around a frame's line, each with its number; None: the source is not there, or
        is another one.
        """
        cell = self.cells.get(frame.file)
        lines = (cell[1] if cell else self._text(frame.file)).splitlines()
        first, last = max(1, frame.line - AROUND), min(len(lines), frame.line + AROUND)
        if not frame.line:
            return None
        return [
            (number, lines[number - 1][:LONGEST_LINE]) for number in range(first, last + 1)
        ] or None

    def _text(self, file: str) -> str:
        """Empty: it is not there, or not what was recorded."""
        if file in self.cells:
            return self.cells[file][0]
        hashes = self.hashes.get(file, NO_HASHES)
        text, digest = _source(file) if hashes else ("", "")
        return text if digest in hashes else ""


@cache
def _source(file: str) -> tuple[str, str]:
    """A file's text and its hash; empty: it is no source that can be read."""
    found = source_of(file)
    if found is None:
        return "", ""
    content = found[0]
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
    except (SyntaxError, ValueError, LookupError):
        return "", ""
    return text, sha256(content, usedforsecurity=False).hexdigest()
