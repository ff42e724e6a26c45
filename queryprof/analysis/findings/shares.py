"""Parts of a statement's time that a fix wins, where no counter of SQLite's shows them.

Measured by benchmarks/gains.py and the programs that are named, with SQLite 3.40; `make
bench-gains` measures them again.
"""

from __future__ import annotations

from queryprof.analysis.marks import ROW_STEPS
from queryprof.analysis.totals import Totals

SORTED = 0.12
"""All rows are returned sorted, and an index has them in that order: 0.07 to 0.14, of 20 to 1,000
rows (sqlite3_sort_all); of 50,000 rows, which then are read from all over the table, nothing.
"""

COVERED = 0.5
"""An index has all columns of rows that are looked up one by one, and fetched: 0.50 to 0.90, of 100
and 500 rows each, short and long ones.
"""

ADDED = 0.8
"""And which are added up: 0.76 to 0.99 (sqlite3_covering)."""

PREPARED = 0.7
"""A text is prepared once instead of each time: 0.66 of a point select (sqlite3_texts), 0.79 of a
join of three tables (sqlite3_texts_of_joins).
"""

LOCKED = 0.75
"""Point selects in one transaction instead of one each: 0.81 with a rollback journal
(sqlite3_autocommit), whose file is in the page cache.
"""

FIRST = 0.78
"""A connection's first statement reads the schema, which another one does not: 0.78 with one table,
0.89 with 30, 0.97 with 200 (sqlite3_connect).
"""

JOINED = 0.3
"""A join returns the rows that many queries returned, of the time of those beyond the first of each
query: 0.29, 0.28 and 0.34, of 10, 100 and 1,000 rows each (sqlite3_fan_out).
"""

CALL_ROWS = 64
"""A call takes as long without its scan as SQLite takes to read so many rows: of 20, 50, 100, 200,
400 and 1,000 rows, read for one, an index wins 0.22, 0.43, 0.61, 0.76, 0.86 and 0.94
(sqlite3_small_scan, sqlite3_index).
"""


LOOKUP_ROWS = 5
"""A row takes as long to find in an index, and then in its table, as SQLite takes to read so many
for one that is left out: where a hundredth, a twentieth, a tenth, a fifth and a third of 40,000
rows are added up, an index wins 0.92, 0.66, 0.43, 0.14 and -0.38 (sqlite3_part).
"""

FETCHED_ROWS = 10
"""And to fetch in Python as ten of those: the same parts fetched, it wins 0.86, 0.49, 0.23, 0.01
and -0.16."""


COVERED_ROWS = 0.5
"""And to read in an index that has all that is needed: a third of 40,000 rows counted, it wins
0.83, and added up, 0.71 (sqlite3_counted).
"""

GROUPED, GROUPED_ROWS = 0.8, 1000
"""An index has rows in groups, with all that is read of them, which are sorted otherwise: of 1,000
rows it wins 0.17 to 0.59, of 40,000 0.76 to 0.91, of 200,000 0.73 to 0.92 (sqlite3_grouped). One
that has the groups alone is 1.1 to 3.7 times slower than the sort: of what that takes, one that has
all wins 0.55 to 0.95.
"""


def scanned(
    read: float, taken: float, more: float = FETCHED_ROWS, lookup: float = LOOKUP_ROWS
) -> float:
    """The part of a scan's calls that an index wins, by the rows read and those taken in each.

    Args:
        more: what a row that is taken takes longer, in times of one that is left out.
        lookup: what it takes to find one by the index, in the same.
    """
    further = max(0.0, taken - 1)  # one is in what a call takes without its scan
    wins = read - 1 - min(1.0, taken) - lookup * further
    return max(0.0, wins) / (max(read, 1.0) + CALL_ROWS + more * further)


def grouped(read: float) -> float:
    """The part of what groups so many rows, or finds the different ones, that an index wins which
    has them all.
    """
    return GROUPED * read / (read + GROUPED_ROWS)


def needed(totals: Totals) -> float:
    """The part of a statement's VM steps that the rows need which it returns, when all goes well;
    0: they are not known.
    """
    rows, steps = totals.rows_each or 0.0, totals.vm_steps or 0.0
    return min(1.0, ROW_STEPS * (rows + 1) / steps) if steps else 0.0
