"""A column's role in a merge follows from its meaning."""

from __future__ import annotations

import pytest

from queryprof.trace.declaration import LEAST, MOST
from queryprof.trace.tables import TABLES

pytestmark = pytest.mark.once

COLUMNS = [(table, column) for table in TABLES for column in table.columns]


@pytest.mark.parametrize(("word", "role"), [("max", MOST), ("min", LEAST)])
def test_an_extreme_is_no_sum(word: str, role: int) -> None:
    found = [
        (table.name, column.name, column.role)
        for table, column in COLUMNS
        if word in column.name.split("_")
    ]
    assert len(found) >= 1
    assert not [one for one in found if one[2] != role]
