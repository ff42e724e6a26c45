"""Decide which files of a day to read, because combined files repeat the rows of their sources.

`fleet compact` combines a day's files into one and removes them later. Until then, the combined
file and its sources exist side by side, and two simultaneous runs may create two combined files.
Each combined file lists its sources, so the names decide which files count. At any moment, the
counted files contain each row exactly once.
"""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DAY = "day-"
"""Prefix of the names of combined files."""


class Day(NamedTuple):
    """The files of one table, service and date.

    Attributes:
        counted: files to read.
        folded: files whose rows are in a counted combined file.
        superfluous: combined files that share sources with a counted combined file.
    """

    counted: tuple[str, ...]
    folded: tuple[str, ...]
    superfluous: tuple[str, ...]


def day_of(sources: Mapping[str, frozenset[str] | None]) -> Day:
    """Classify the files of a day.

    Args:
        sources: the sources of each file, by its name; None if it is not a combined file.
    """
    days = {name: some for name, some in sources.items() if some is not None}
    chosen: list[str] = []
    covered: set[str] = set()
    superfluous: list[str] = []
    for name in sorted(days, key=lambda one: (-len(days[one]), one)):
        if name in covered:
            continue
        if days[name] & covered:
            superfluous.append(name)
            continue
        chosen.append(name)
        covered |= days[name]
    folded = tuple(name for name in sources if name in covered)
    others = [name for name in sources if name not in covered and name not in days]
    return Day(tuple(sorted([*chosen, *others])), folded, tuple(superfluous))


def counted_files(sources: Mapping[str, frozenset[str] | None]) -> tuple[str, ...]:
    """Return the files to read (see day_of)."""
    return day_of(sources).counted
