"""A query whose rows change by themselves is no duplicate, and an index that only sorts helps only
if enough rows match.
"""

from __future__ import annotations

import pytest

from queryprof.analysis.findings.repeated import is_volatile

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT a FROM t ORDER BY RANDOM() LIMIT ?", True),
        ("SELECT a FROM t WHERE at < julianday(?)", True),
        ("SELECT strftime(?, ?) FROM t", True),
        ("SELECT datetime() FROM t", True),
        ("SELECT CURRENT_TIMESTAMP", True),
        ("SELECT now()", True),
        ("SELECT a FROM t WHERE day = ?", False),
        ("SELECT date(at) FROM t", False),
        ("SELECT strftime(?, at) FROM t", False),
        ("SELECT a, time FROM t WHERE date = ? AND random = ?", False),
        ("SELECT strftime", False),
        ("", False),
    ],
)
def test_a_volatile_query_returns_other_rows_each_time(statement: str, expected: bool) -> None:
    assert is_volatile(statement) == expected
