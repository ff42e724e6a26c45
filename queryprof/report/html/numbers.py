"""Numbers for the texts, call sites and statements of a page. The page stores each of them once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from queryprof.model import Frame
from queryprof.report.html.page_places import PagePlaces
from queryprof.report.inert import escape_control_characters

MAX_TEXT_CHARACTERS = 20_000
NONE = -1


class TextNumbers:
    """Assign numbers to texts and call sites, in order of first use.

    Args:
        statements: the statements that the page describes, in the order of their numbers.
    """

    def __init__(self, places: PagePlaces, statements: Iterable[str]) -> None:
        self._places = places
        self._strings: dict[str, int] = {}
        self._sites: dict[tuple[str, str, int], int] = {}
        self._known: dict[Frame, int] = {}
        self._statements = {statement: number for number, statement in enumerate(statements)}

    def text_number(self, text: str | None) -> int:
        if text is None:
            return NONE
        shown = escape_control_characters(
            text if len(text) <= MAX_TEXT_CHARACTERS else text[:MAX_TEXT_CHARACTERS] + " ..."
        )
        return self._strings.setdefault(shown, len(self._strings))

    def site_number(self, frame: Frame | None) -> int:
        if frame is None:
            return NONE
        number = self._known.get(frame)
        if number is None:
            key = (frame.function, self._places.file(frame.file), frame.line)
            number = self._known[frame] = self._sites.setdefault(key, len(self._sites))
        return number

    def statement_number(self, statement: str) -> int:
        return self._statements.get(statement, NONE)

    def number_and_text(self, statement: str) -> dict[str, int]:
        """Return the number of a statement and the number of its text. The page needs the text for
        statements that it does not describe.
        """
        return {
            "statement": self.statement_number(statement),
            "text": self.text_number(statement) if statement else NONE,
        }

    @property
    def frames(self) -> dict[Frame, int]:
        """All frames with their numbers."""
        return self._known

    def columns(self) -> dict[str, Any]:
        """Return all texts and call sites as page data."""
        sites = {
            "function": [self.text_number(function) for function, _, _ in self._sites],
            "file": [self.text_number(file) for _, file, _ in self._sites],
            "line": [line for _, _, line in self._sites],
        }
        return {"sites": sites, "strings": list(self._strings)}
