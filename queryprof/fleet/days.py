"""Which files of a day count, where some have the rows of others.

`fleet compact` makes one file of a day's files. These go later, and until then both are there; two
that compact at once make two. A day's file names its sources, and theirs, so that what counts
follows from the names alone: whoever lists the files, at any moment, has each row once.
"""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DAY = "day-"
"""What the names of days' files begin with."""


class Day(NamedTuple):
    """The files of one table, service and date.

    Attributes:
        counted: those whose rows count.
        folded: those whose rows are in a day's file that counts.
        superfluous: days' files that have rows of another day's file, too.
    """

    counted: tuple[str, ...]
    folded: tuple[str, ...]
    superfluous: tuple[str, ...]


def day_of(sources: Mapping[str, frozenset[str] | None]) -> Day:
    """Sorts files.

    Args:
        sources: by a file's name: those of a day's file; None: it is no day's.
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
    """Those whose rows count, each once."""
    return day_of(sources).counted
