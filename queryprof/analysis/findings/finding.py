"""A finding: one cause of slowness, where to change the program, and the most that it can win."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.findings.migrations import migration_of


class Severity(StrEnum):
    """By the share of the program's time that a fix can win at the most."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """0 is the most severe."""
        return list(Severity).index(self)


def most_severe(*found: Severity) -> Severity:
    return min(found, key=lambda one: one.rank)


def least_severe(*found: Severity) -> Severity:
    return max(found, key=lambda one: one.rank)


HIGH_SHARE = 0.10
"""From this share of the run on, or ..."""

HIGH_SPAN_NS = 100_000_000
"""... this time for each request (span), a finding is high."""

MEDIUM_SHARE = 0.02

HIGH_DOUBTFUL, MEDIUM_DOUBTFUL = 0.50, 0.20
"""The same where something is in doubt."""

FEW_NS = 100_000_000
"""Less than this of a whole run is low, whatever its share: the run is short."""

LEAST_SHARE, LEAST_NS = 0.005, 1_000_000
"""A finding that can win less of both is none, ..."""

NO_SHARE = 0.001
"""... nor is one of this share of a run, however long that is."""

CATEGORIES = {
    "n_plus_one": "the same query for each row or item of a loop",
    "duplicate_query": "the same query with the same parameters, again and again",
    "many_cheap": "very many fast queries",
    "commit_per_write": "a commit for each write",
    "single_inserts": "a library inserts row by row what it can insert at once",
    "single_changes": "rows are changed one by one",
    "awaited_rows": "rows are awaited one by one, each by a way to a thread and back",
    "autocommit_reads": "each read takes the file's lock for itself",
    "lock_upgrade": "a transaction that began to read is refused when it would write",
    "lock_wait": "waits for a lock that others hold",
    "long_transaction": "a transaction that stays open while the program does other work",
    "pinned_wal": "a read transaction that keeps the write-ahead log from being reset",
    "re_prepare": "values are in the SQL text, so that each text is prepared again",
    "connection_per_query": "a connection is opened for each query",
    "offset_pagination": "OFFSET reads all rows that it leaves out",
    "full_scan": "a table is read from end to end for a few rows",
    "temp_btree_sort": "many rows are sorted each time",
    "automatic_index": "SQLite builds an index each time",
    "correlated_subquery": "a subquery runs again for each row",
    "missing_covering_index": "no index has all that is read of its rows",
    "index_defeated": "the way a column is compared keeps an index on it from being used",
    "narrow_index": "an index leaves many more rows to look at than are returned",
    "bad_index_choice": "another index fits better, and there are no statistics to show it",
    "bad_estimate": "a plan is chosen for many more or fewer rows than come",
    "stale_statistics": "the planner chooses by rows that were counted when tables were small",
    "redundant_index": "an index is the beginning of another one",
    "large_values": "large values are read or written that may not be needed",
    "trigger_work": "a trigger takes most of what a write takes",
    "blocked_loop": "the event loop waits for the database",
    "over_fetch": "more rows are made than the program takes",
    "many_objects": "a library makes objects of many rows",
    "heavy_query": "a statement takes much of the time",
}
"""What each category means; find.RULES has their order of precedence."""


OF_LINES = frozenset(
    {"n_plus_one", "duplicate_query", "commit_per_write", "single_inserts", "single_changes"}
)
"""Categories whose fix saves passes of the program's line, and so what a library takes in it."""

OF_TESTS = frozenset({"n_plus_one", "full_scan"})
"""Categories that are found in a test, whose tables have a few rows (few_rows.py)."""

OF_SERVERS = frozenset({"bad_estimate"})
"""Categories that are found with the plans of a database's server alone."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause of slowness.

    Attributes:
        category: of CATEGORIES.
        share: of the program's time that a fix can win at the most (0 to 1); gain_ns: the time.
        statement: as recorded; "" where it is about none.
        site: where to change the program.
        loop: the loop around the call; None: not known.
        evidence: what was measured, in sentences.
        fix: what to do; code: SQL or Python where it can be written, else "".
        doubt: what is not sure; "" when nothing is in doubt.
        parent: the statement for whose rows this one is executed; "" where it is not known.
        whole: what the share is of (findings/whole.py).
        is_least: the library's time was not measured, so that the fix may win more.
        library: the package that made the statement; "": the program did, or it is not known.
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
    def migration(self) -> str:
        """An index as the library's migration; "": there is none."""
        return migration_of(self.library, self.code)

    @property
    def identity(self) -> str:
        """Stable while the statement, file and function stay: no line numbers in it."""
        frame = self.site.frame
        place = f"{frame.file.rpartition('/')[2]}:{frame.function}" if frame else ""
        digest = hashlib.sha256(f"{self.statement}\0{place}".encode()).hexdigest()[:8]
        return f"{self.category}-{digest}"


def severity_of(
    share: float, span_ns: float, is_sure: bool = True, gain_ns: float = FEW_NS
) -> Severity:
    """The severity of what can win a share of the run, so much time a span, and so much in all."""
    if gain_ns < FEW_NS and not span_ns:
        return Severity.LOW
    if not is_sure:
        is_medium = share >= MEDIUM_DOUBTFUL or span_ns >= HIGH_SPAN_NS
        doubtful = Severity.MEDIUM if is_medium else Severity.LOW
        return Severity.HIGH if share >= HIGH_DOUBTFUL else doubtful
    if share >= HIGH_SHARE or span_ns >= HIGH_SPAN_NS:
        return Severity.HIGH
    return Severity.MEDIUM if share >= MEDIUM_SHARE else Severity.LOW
