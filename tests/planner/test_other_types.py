"""Columns whose declared type keeps SQLite from an index."""

from __future__ import annotations

from queryprof.model import Schema
from queryprof.planner.facts import IndexHelp
from queryprof.planner.planner import SchemaPlanner

CREATED = (
    "CREATE TABLE book (id INTEGER PRIMARY KEY, number INTEGER)",
    "CREATE TABLE sale (id INTEGER PRIMARY KEY, book TEXT, price INTEGER)",
)
QUERY = (
    "SELECT avg(price) FROM book JOIN sale ON book.number = sale.book WHERE book.id BETWEEN ? AND ?"
    " GROUP BY book.id"
)


def help_for(plan: tuple[str, ...]) -> IndexHelp | None:
    with SchemaPlanner({"a.db": Schema("a.db", (), CREATED)}, {QUERY: "a.db"}, ()) as planner:
        return planner.index_help(QUERY, (plan,))


def test_a_type_that_keeps_the_scan_beside_another_index() -> None:
    """An index on book.number would only search the few books for each of all sales."""
    other = help_for(("SCAN book",))  # names the plan of this SQLite
    assert other
    served = help_for(other.plan)
    assert served
    assert (served.terms, served.differing) == (("number",), ("sale.book",))
