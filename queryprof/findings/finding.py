"""A finding: one cause of slowness, where to change the program, and the most that a fix
can save.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from queryprof.analysis.call_sites import CallSite
from queryprof.findings.migrations import migration_of


class Severity(StrEnum):
    """How severe a finding is: mainly the share of the program's time that a fix can save."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """The position in the order of severity; 0 is the most severe."""
        return list(Severity).index(self)


def most_severe(*found: Severity) -> Severity:
    return min(found, key=lambda one: one.rank)


def least_severe(*found: Severity) -> Severity:
    return max(found, key=lambda one: one.rank)


HIGH_SHARE = 0.10
"""A finding is high if it saves at least this share of the run ..."""

HIGH_SPAN_NS = 100_000_000
"""... or at least this time per request (span)."""

MEDIUM_SHARE = 0.02

HIGH_DOUBTFUL, MEDIUM_DOUBTFUL = 0.50, 0.20
"""The same limits for a finding with a doubt."""

FEW_NS = 100_000_000
"""If a fix saves less time than this in the whole run, the finding is low."""

MIN_SHARE, MIN_NS = 0.005, 1_000_000
"""A problem below both limits is not a finding ..."""

NO_SHARE = 0.001
"""... and neither is a problem below this share of the run, however long the run is."""


class Category(NamedTuple):
    """A kind of finding: its title, and a sentence that explains it."""

    title: str
    meaning: str


CATEGORIES = {
    "n_plus_one": Category(
        "N+1 query",
        "The same query runs once per row of another query, or once per item of a loop.",
    ),
    "duplicate_query": Category(
        "Duplicate query",
        "The same query runs again and again with the same parameters.",
    ),
    "many_cheap": Category("Many fast queries", "Very many queries that take little time each."),
    "commit_per_write": Category("Commit per write", "Each write has a transaction of its own."),
    "single_inserts": Category(
        "Row-by-row inserts",
        "Rows that could be inserted together are inserted one by one.",
    ),
    "single_changes": Category("Row-by-row changes", "Rows are updated or deleted one by one."),
    "awaited_rows": Category(
        "Row-by-row awaits",
        "Each row is awaited on its own, and each await hands work to a thread.",
    ),
    "autocommit_reads": Category(
        "Reads in autocommit",
        "Each read takes and releases the file lock on its own.",
    ),
    "lock_upgrade": Category(
        "Refused lock upgrade",
        "A transaction reads first, then fails when it writes.",
    ),
    "lock_wait": Category("Lock wait", "Queries wait for a lock that another connection holds."),
    "long_transaction": Category(
        "Long transaction",
        "A transaction stays open while the program does other work.",
    ),
    "pinned_wal": Category(
        "Write-ahead log not reset",
        "Read transactions keep SQLite from resetting the write-ahead log.",
    ),
    "re_prepare": Category(
        "Values in the SQL text",
        "Values in the SQL text make each text a new statement, which the driver prepares again.",
    ),
    "connection_per_query": Category(
        "Connection per query",
        "The program opens a connection for each query.",
    ),
    "pool_wait": Category(
        "Waiting for a pool",
        "Calls wait until another thread or task gives its connection back to the pool.",
    ),
    "offset_pagination": Category("OFFSET pagination", "OFFSET reads every row that it skips."),
    "full_scan": Category("Full table scan", "A query reads a whole table to return a few rows."),
    "temp_btree_sort": Category(
        "Sort without an index",
        "A query sorts many rows each time it runs.",
    ),
    "automatic_index": Category(
        "Automatic index",
        "SQLite builds a temporary index each time the query runs.",
    ),
    "correlated_subquery": Category("Correlated subquery", "A subquery runs again for each row."),
    "duplicate_rows": Category(
        "Duplicate rows from a join",
        "A join repeats rows that the query does not need.",
    ),
    "missing_covering_index": Category(
        "Missing covering index",
        "No index holds all the columns that the query reads.",
    ),
    "index_defeated": Category(
        "Index not usable",
        "The way a query compares a column keeps SQLite from using an index on it.",
    ),
    "narrow_index": Category(
        "Index too narrow",
        "An index finds many more rows than the query returns.",
    ),
    "bad_index_choice": Category(
        "Wrong index chosen",
        "Another index fits better, but SQLite has no statistics that show this.",
    ),
    "bad_estimate": Category(
        "Wrong row estimate",
        "The planner expected many more or fewer rows than there are.",
    ),
    "stale_statistics": Category(
        "Stale statistics",
        "The planner uses row counts from when tables were small.",
    ),
    "redundant_index": Category(
        "Redundant index",
        "One index starts with all the columns of another.",
    ),
    "large_values": Category(
        "Large values",
        "A query reads or writes large values that it may not need.",
    ),
    "trigger_work": Category("Slow trigger", "A trigger takes most of the time of a write."),
    "blocked_loop": Category(
        "Blocked event loop",
        "The event loop runs no other task while one task waits for the database, sleeps or"
        " computes.",
    ),
    "over_fetch": Category("Unused rows", "The database returns more rows than the program uses."),
    "many_objects": Category("Many objects", "A library builds objects for many rows."),
    "heavy_query": Category(
        "Heavy query",
        "One statement takes much of the time, and no other rule explains it.",
    ),
}
"""All kinds of findings. See find.RULES for their precedence."""


LINE_CATEGORIES = frozenset(
    {"n_plus_one", "duplicate_query", "commit_per_write", "single_inserts", "single_changes"}
)
"""Categories whose fix makes the program's line run less often, and thereby also saves the
library's time.
"""

TEST_CATEGORIES = frozenset({"n_plus_one", "full_scan"})
"""Categories that can be found in a test with few rows (few_rows.py)."""

SERVER_CATEGORIES = frozenset({"bad_estimate"})
"""Categories that need the plans of a database server."""


UNKNOWN_FAULT = "No known cause."
"""The start of the fix of a finding without a known cause."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause of slowness.

    Attributes:
        category: a key of CATEGORIES.
        share: the largest share of the program's time that a fix can save (0 to 1).
        gain_ns: the most time that a fix can save.
        statement: as recorded; "" if the finding is not about a statement.
        site: where to change the program.
        loop: the loop around the call; None if unknown.
        evidence: measurements, in sentences.
        fix: what to do.
        code: SQL or Python for the fix, or "".
        doubt: what is uncertain, or "".
        parent: the query for whose rows the finding's statement runs; "" if unknown.
        whole: the name of the time that the share refers to (findings/whole.py).
        is_least: True if the fix may save more, because the library's time was not measured.
        library: the package that executed the statement; "" if the program did, or if unknown.
    """

    category: str
    severity: Severity
    share: float
    gain_ns: int
    statement: str
    site: CallSite
    loop: CallSite | None
    evidence: tuple[str, ...]
    fix: str
    code: str = ""
    doubt: str = ""
    parent: str = ""
    whole: str = "run"
    is_least: bool = False
    library: str = ""

    @property
    def is_unexplained(self) -> bool:
        """Whether no fix is known, so that `gain_ns` is only the time that the statement takes."""
        return self.fix.startswith(UNKNOWN_FAULT)

    @property
    def migration(self) -> str:
        """The index of `code` as a migration of Django or Alembic; "" if there is none."""
        return migration_of(self.library, self.code)

    @property
    def identity(self) -> str:
        """A stable key. It changes only with the category, statement, file or function, not with
        line numbers.
        """
        frame = self.site.frame
        place = f"{frame.file.rpartition('/')[2]}:{frame.function}" if frame else ""
        digest = hashlib.sha256(f"{self.statement}\0{place}".encode()).hexdigest()[:8]
        return f"{self.category}-{digest}"


UNKNOWN_ITEMS = "The items of the loop may not come from a query."
"""The doubt about an N+1 query whose parent query is unknown."""


def severity_of_gain(
    share: float, span_ns: float, is_sure: bool = True, gain_ns: float = FEW_NS
) -> Severity:
    """Return the severity of a gain, from its share of the run, its time per span and its total
    time.
    """
    if gain_ns < FEW_NS and not span_ns:
        return Severity.LOW
    if not is_sure:
        is_medium = share >= MEDIUM_DOUBTFUL or span_ns >= HIGH_SPAN_NS
        doubtful = Severity.MEDIUM if is_medium else Severity.LOW
        return Severity.HIGH if share >= HIGH_DOUBTFUL else doubtful
    if share >= HIGH_SHARE or span_ns >= HIGH_SPAN_NS:
        return Severity.HIGH
    return Severity.MEDIUM if share >= MEDIUM_SHARE else Severity.LOW


def first_text_if_true(*choices: tuple[object, str]) -> str:
    """Return the first text whose condition is true; "" if no condition is."""
    return next((text for condition, text in choices if condition), "")


UNEXPLAINED_WEIGHT = 0.25
"""The weight of a gain without a known cause, in the order of findings. Such a gain is the whole
time of the statement, and a fix saves an unknown part of it.
"""


def importance_key(finding: Finding) -> tuple[bool, int, float, str]:
    """Return the key that sorts findings, the most important first."""
    fails = finding.category == "lock_upgrade"  # failing calls matter more than slow ones
    weight = UNEXPLAINED_WEIGHT if finding.is_unexplained else 1.0
    return not fails, finding.severity.rank, -finding.gain_ns * weight, finding.identity
