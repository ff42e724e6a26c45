"""The shares of a statement's time that fixes save, where SQLite's counters do not show them.

The shares (0 to 1) were measured with SQLite 3.40 by benchmarks/gains.py and the programs named
below. "Saved if ..." stands for "The share of the statement's time that is saved if ...". Run `make
bench-gains` to measure the shares again.
"""

from __future__ import annotations

from queryprof.analysis.marks import ROW_STEPS
from queryprof.analysis.totals import Totals

SORT_SAVED_SHARE = 0.12
"""Saved if all rows are returned sorted and an index has them in this order: 0.07 to 0.14 for 20 to
1,000 rows (sqlite3_sort_all). For 50,000 rows, random reads of the table cost as much as the sort.
"""

COVERED = 0.5
"""Saved if a covering index replaces looking up rows one by one and fetching them: 0.50 to 0.90 for
100 and 500 rows, short and long.
"""

ADDED = 0.8
"""The share of the time saved if a covering index spares an aggregate such as sum() the look-up of
each row. Measured: 0.76 to 0.99 (sqlite3_covering).
"""

PREPARED = 0.7
"""The share of the time saved if the driver prepares a text once, not at each execution. Measured:
0.66 for a query by key (sqlite3_texts), 0.79 for a join of three tables (sqlite3_texts_of_joins).
"""

COMPILED = 0.48
"""The share of the line's time saved if SQLAlchemy also compiles a text once, not at each
execution. Measured: 0.40 for a short text(), 0.48 for a long one, 0.56 for exec_driver_sql(), 0.59
for a join of three tables.
"""

DUCKDB_EXECUTEMANY = 0.96
"""The share of the time saved if one INSERT with lists of values replaces executemany() in DuckDB.
Measured: 0.96 for 100 rows of three columns, 0.97 for 600, 0.98 for 2,000 (DuckDB 1.5, in memory).
"""

LOCKED = 0.75
"""The share of the time saved if many queries by key share one transaction. Measured: 0.81 with a
rollback journal, and the file in the page cache (sqlite3_autocommit).
"""

FIRST = 0.78
"""The share of the time of a connection's first statement that reading the schema takes. Measured:
0.78 with one table, 0.89 with 30, 0.97 with 200 (sqlite3_connect).
"""

JOINED = 0.3
"""The share of the time for the rows after the first that is saved if a join replaces many queries.
Measured: 0.29, 0.28 and 0.34 for 10, 100 and 1,000 rows per query (sqlite3_fan_out).
"""

CALL_ROWS = 64
"""The rest of a call, without its scan, takes as long as a scan of this many rows. Measured: a call
scans 20, 50, 100, 200, 400 or 1,000 rows to find one. An index saves 0.22, 0.43, 0.61, 0.76, 0.86
and 0.94 of its time (sqlite3_small_scan, sqlite3_index).
"""


LOOKUP_ROWS = 5
"""Finding a row in an index and then in its table takes as long as scanning this many rows.
Measured: a query adds up 1/100, 1/20, 1/10, 1/5 or 1/3 of 40,000 rows. An index saves 0.92, 0.66,
0.43, 0.14 and -0.38 of its time (sqlite3_part).
"""

FETCHED_ROWS = 10
"""Fetching a row in Python takes as long as scanning this many rows. Measured: a query fetches the
same parts of 40,000 rows (see LOOKUP_ROWS). An index saves 0.86, 0.49, 0.23, 0.01 and -0.16 of its
time.
"""


COVERED_ROWS = 0.5
"""Reading one row in a covering index takes as long as scanning this many rows of the table.
Measured with a query of a third of 40,000 rows: such an index saves 0.83 of the time of count(*),
and 0.71 of the time of sum() (sqlite3_counted).
"""

GROUPED, GROUPED_ROWS = 0.8, 1000
"""Saved if a covering index has rows in groups that SQLite otherwise sorts: 0.17 to 0.59 for 1,000
rows, 0.76 to 0.91 for 40,000, 0.73 to 0.92 for 200,000 (sqlite3_grouped). With an index on the
grouped columns alone, the query is 1.1 to 3.7 times slower than with the sort. A covering index
saves 0.55 to 0.95 of that time.
"""


def scan_saving_share(
    read: float, taken: float, more: float = FETCHED_ROWS, lookup: float = LOOKUP_ROWS
) -> float:
    """Return the share of a scanning statement's time that an index saves.

    Args:
        read: the rows that each execution reads.
        taken: the rows that each execution uses.
        more: the extra time of a used row, in units of the time of a skipped row.
        lookup: the time to find a row by the index, in the same units.
    """
    further = max(0.0, taken - 1)  # a call without its scan includes one row
    wins = read - 1 - min(1.0, taken) - lookup * further
    return max(0.0, wins) / (max(read, 1.0) + CALL_ROWS + more * further)


def grouping_saving_share(read: float) -> float:
    """Return the share of the time that a covering index saves for a query that groups `read` rows,
    or finds distinct values in them.
    """
    return GROUPED * read / (read + GROUPED_ROWS)


def needed_vm_steps_share(totals: Totals) -> float:
    """Return the share of a statement's VM steps that a good plan would need for the returned rows;
    0 if unknown.
    """
    rows, steps = totals.rows_each or 0.0, totals.vm_steps or 0.0
    return min(1.0, ROW_STEPS * (rows + 1) / steps) if steps else 0.0
