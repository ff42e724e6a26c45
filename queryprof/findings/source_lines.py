"""Facts about lines of the program's source that findings need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from queryprof.model import Frame

TaskFinder = Callable[[Frame], bool | None]
"""Returns whether a frame's line creates tasks, which run concurrently; None if unknown."""

NO_TASKS: TaskFinder = lambda _: None  # noqa: E731 no source is known


class SourceLines(Protocol):
    """Facts about lines in the program's source, as far as the source is known."""

    def needs_previous_row(self, frame: Frame) -> bool:
        """Return whether a query in a loop needs a row of the previous query."""

    def loop_sleeps(self, frame: Frame) -> bool:
        """Return whether each iteration of the loop in this line sleeps."""

    def attributes_appended_to(self, frame: Frame) -> frozenset[str]:
        """Return the attributes that a line only appends to."""

    def row_reduction(self, frame: Frame, attribute: str = "", is_lazy: bool = False) -> str:
        """Return what a line reduces the rows of its query to: count, sum, exists, first, filter,
        or "".
        """

    def reads_values(self, frame: Frame) -> bool:
        """Return whether a line asks an object mapper for values, not for objects."""

    def only_tests_existence(self, frame: Frame) -> bool:
        """Return whether a line uses its query's row count only to test whether there are rows."""

    def driver_callbacks(self) -> tuple[str, ...]:
        """Return where the program gives functions to its driver: "set_authorizer() app.py:7"."""

    def only_attributes(self, frame: Frame) -> tuple[str, ...]:
        """Return the attributes that the loop over a line's rows reads, if it uses nothing else of
        the rows.
        """

    def table_of_class(self, name: str) -> str:
        """Return the table that a class names for an object mapper; "" if unknown."""

    def declares_table(self, table: str) -> bool:
        """Return whether a class of the program names a table for an object mapper."""


class UnknownSourceLines:
    """The implementation of SourceLines if no source is known."""

    def needs_previous_row(self, frame: Frame) -> bool:  # noqa: ARG002
        return False

    def loop_sleeps(self, frame: Frame) -> bool:  # noqa: ARG002
        return False

    def attributes_appended_to(self, frame: Frame) -> frozenset[str]:  # noqa: ARG002
        return frozenset()

    def row_reduction(
        self,
        frame: Frame,  # noqa: ARG002
        attribute: str = "",  # noqa: ARG002
        is_lazy: bool = False,  # noqa: ARG002
    ) -> str:
        return ""

    def reads_values(self, frame: Frame) -> bool:  # noqa: ARG002
        return False

    def only_tests_existence(self, frame: Frame) -> bool:  # noqa: ARG002
        return False

    def driver_callbacks(self) -> tuple[str, ...]:
        return ()

    def only_attributes(self, frame: Frame) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def table_of_class(self, name: str) -> str:  # noqa: ARG002
        return ""

    def declares_table(self, table: str) -> bool:  # noqa: ARG002
        return False


NO_LINES = UnknownSourceLines()

LoopFinder = Callable[[Frame, str], Frame | None]
"""Returns the line of the loop around a frame's line, as a frame of the same function. Returns None
if there is no loop or no source, and ENDLESS for the loop of a worker or server.
"""
