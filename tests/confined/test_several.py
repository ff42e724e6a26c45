"""One statement at a time."""

from __future__ import annotations

import pytest

from queryprof.confined.several import refuse_several_statements

pytestmark = pytest.mark.once


@pytest.mark.parametrize("rest", ["DELETE FROM t", "SELECT ?", "SELEC 1", "SELECT * FROM missing"])
def test_a_second_statement_is_refused_whatever_it_is(rest: str) -> None:
    connection = pytest.importorskip("apsw").Connection(":memory:")
    connection.execute("CREATE TABLE t (a)")
    with pytest.raises(ValueError, match="more than one statement"):
        refuse_several_statements(connection, f"SELECT 1; {rest}")


@pytest.mark.parametrize("rest", ["", ";", " -- a comment", " /* one */ ; "])
def test_what_executes_nothing_is_no_statement(rest: str) -> None:
    connection = pytest.importorskip("apsw").Connection(":memory:")
    refuse_several_statements(connection, f"SELECT 1;{rest}")
