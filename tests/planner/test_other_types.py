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


def help_for(
    plan: tuple[str, ...], query: str = QUERY, created: tuple[str, ...] = CREATED
) -> IndexHelp | None:
    with SchemaPlanner({"a.db": Schema("a.db", (), created)}, {query: "a.db"}, ()) as planner:
        return planner.index_help(query, (plan,))


def test_a_type_that_keeps_the_scan_beside_another_index() -> None:
    """An index on book.number would only search the few books for each of all sales."""
    other = help_for(("SCAN book",))  # names the plan of this SQLite
    assert other
    served = help_for(other.plan)
    assert served
    assert (served.terms, served.differing) == (("number",), ("sale.book",))


def test_a_type_that_keeps_a_search_from_a_covering_index() -> None:
    """The index on sale.book holds all that the query reads, so SQLite scans the index."""
    query = "SELECT count(sale.id) FROM sale JOIN book ON book.number = sale.book WHERE book.id = ?"
    created = (*CREATED, "CREATE INDEX sale_book ON sale (book)")
    other = help_for(("SCAN book",), query, created)
    assert other
    assert any("COVERING INDEX sale_book" in step for step in other.plan)
    served = help_for(other.plan, query, created)
    assert served
    assert (served.code, served.differing) == ("", ("sale.book",))


def test_an_equal_type_is_no_other_type() -> None:
    """With another type, SQLite could not search the other table, and would search this one."""
    created = (
        "CREATE TABLE engineer (id INTEGER PRIMARY KEY, badge TEXT, team INTEGER, name TEXT)",
        "CREATE TABLE worklog (id INTEGER PRIMARY KEY, badge TEXT, minutes INTEGER)",
    )
    query = (
        "SELECT e.name, sum(w.minutes) FROM engineer e JOIN worklog w ON w.badge = e.badge"
        " WHERE e.team BETWEEN ? AND ? GROUP BY e.id"
    )
    other = help_for(("SCAN engineer",), query, created)
    assert other
    served = help_for(other.plan, query, created)
    assert served
    assert (served.terms, served.differing) == (("badge",), ())
