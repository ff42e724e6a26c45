"""What lines of a program do with the rows that they read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import aggregate, profile_of
from findings.test_cause_choices import MS, SITE

from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.source_lines import UnknownSourceLines
from queryprof.model import Frame, Plan
from queryprof.program.source_uses import only_tests_existence, reads_values, row_reduction

pytestmark = pytest.mark.once

ROWS = "SELECT * FROM payment"


@pytest.mark.parametrize(
    ("code", "use"),
    [
        ("n = len(Ticket.objects.filter(queue=1))", "count"),
        ("counts[1] = len(db.execute(q).fetchall())", "count"),
        ("rows.append(len(Ticket.objects.all()))", "count"),
        ("n = len(Ticket.objects.all()) + other.count()", ""),
        ("n = len(','.join(one.text() for one in s.scalars(q)))", ""),
        ("print(len(args), Ticket.objects.all())", ""),
        ("return sum(p.cents for p in Payment.filter(a=1))", "sum"),
        ("return sum(p.cents for p in Payment.filter(a=1) if p.paid)", "sum"),
        ("return sum(tax(p) for p in Payment.filter(a=1))", ""),
        ("return sum([p.cents for p in Payment.filter(a=1)], 5)", ""),
        ("return any(p.late for p in Payment.filter(a=1))", "exists"),
        ("return sorted(s.scalars(q).all(), key=lambda p: -p.score)[:10]", "first"),
        ("return sorted(s.scalars(q).all(), key=lambda p: rank(p))[:10]", ""),
        ("return sorted(s.scalars(q).all(), key=rank)[:10]", ""),
        ("return sorted(s.scalars(q).all())", ""),
        ("return sorted(s.scalars(q).all())[5:]", ""),
        ("return s.scalars(q).all()", ""),
        ("return [len(Ticket.objects.filter(queue=n)) for n in q]", "count"),
        ("return [sum(r.stars for r in b.reviews.all()) for b in q]", ""),
        ("rows = s.scalars(q).all()\n    return sorted(rows)[:3]", "first"),
        ("rows = s.scalars(q).all()\n    return len(rows)", "count"),
        ("rows = s.scalars(q).all()\n    return len(rows), rows[0]", ""),
        ("text = ','.join(one.a() for one in s.scalars(q))\n    return len(text)", ""),
        ("kinds = {one.kind for one in s.scalars(q)}\n    return len(kinds)", ""),
        ("kinds = set(s.scalars(q))\n    return len(kinds)", ""),
        ("some = [one for one in s.scalars(q) if one.is_open]\n    return len(some)", ""),
        ("names = [one.name for one in s.scalars(q)]\n    return len(names)", "count"),
        ("some = [{'name': one.name} for one in s.scalars(q)]\n    return len(some)", ""),
        ("rows = s.scalars(q).all()\n    return len(rows), sum(r.a for r in rows)", ""),
        ("for row in db.execute(q):\n        sums[row[1]] += row[2]", "sum"),
        ("for row in db.execute(q):\n        if row[3]:\n            n += 1", "sum"),
        ("for row in db.execute(q):\n        sums[key(row)] += row[2]", ""),
        ("for row in db.execute(q):\n        sums[row[1]] += row[2]\n        print(row)", ""),
        ("for row in db.execute(q):\n        found[row[1]] = row", ""),
        ("return len(", ""),
    ],
)
def test_what_a_line_reduces_its_rows_to(code: str, use: str) -> None:
    assert row_reduction(f"def f(db, s, q):\n    {code}\n", 2) == use


@pytest.mark.parametrize(
    ("code", "use"),
    [
        ("return len(query)", "count"),
        ("n = len(query)\n    return n, query.filter(a=1)", "count"),
        ("n = len(query)\n    return n, query[0]", ""),
        ("n = len(query)\n    return n, list(query)", ""),
        ("n = len(query)\n    return n, query[:25]", "count"),
        ("if query:\n        return 1", "exists"),
        ("if not query:\n        return 1", "exists"),
        ("while query:\n        query = query.filter(a=1)", "exists"),
        ("return 1 if query else 2", "exists"),
        ("if query:\n        return query", ""),
        ("if query.all():\n        return 1", ""),
        ("if query > 3:\n        return 1", ""),
        ("load(len(query))", ""),  # load() may be what executes the query
        ("print(len(query))", "count"),
    ],
)
def test_what_a_line_reduces_a_lazy_query_to(code: str, use: str) -> None:
    """The query was made in another line, and this line executes it."""
    assert row_reduction(f"def f(query):\n    {code}\n", 2) == use


@pytest.mark.parametrize(
    ("code", "use"),
    [
        ("context.update(n=len(query))", "count"),
        ("context.update(n=len(query), rows=list(query))", ""),
        ("context.update(n=len(query), m=len(context))", ""),
        ("context.update(load(query))", ""),
    ],
)
def test_what_a_line_with_calls_reduces_a_lazy_query_to(code: str, use: str) -> None:
    """The library says that no method call executed the query."""
    assert row_reduction(f"def f(query, context):\n    {code}\n", 2, is_lazy=True) == use


@pytest.mark.parametrize(
    ("code", "use"),
    [
        ("return len(room.messages)", "count"),
        ("rows.append((room.name, len(room.messages)))", "count"),
        ("rows.append((room.messages[0], len(room.messages)))", ""),
        ("return sum(m.size for m in room.messages)", "sum"),
        ("return room.messages", ""),
        ("return len(room.others)", ""),
    ],
)
def test_what_a_line_reduces_a_relation_to(code: str, use: str) -> None:
    assert row_reduction(f"def f(room, rows):\n    {code}\n", 2, "messages") == use


@pytest.mark.parametrize(
    ("code", "use"),
    [
        ("return [p.name for p in Product.select() if p.stock == 0]", "filter"),
        ("rows = Product.select()\n    return [p.name for p in rows if p.stock == 0]", "filter"),
        ("for p in Product.select():\n        if p.stock == 0:\n            show(p)", "filter"),
        (
            "for p in Product.select():\n        if p['stock'] in wanted:\n            show(p)",
            "filter",
        ),
        ("return [p for p in Product.select() if p.stock == 0 and p.a > 1]", "filter"),
        ("return [p for p in Product.select() if p.stock > 0]", ""),
        ("return [p for p in Product.select() if p.stock != 0]", ""),
        ("return [p for p in Product.select() if p.stock == f(p)]", ""),
        ("return [p for p in Product.select() if a == 1]", ""),
        ("rows = Product.select()\n    return rows, [p for p in rows if p.stock == 0]", ""),
        ("rows = Product.select()\n    return {a: [p for p in rows if p.a == a] for a in b}", ""),
        (
            "for p in Product.select():\n        if p.a == 0:\n            f(p)\n        else: g(p)",
            "",
        ),
        (
            "for p in Product.select():\n        if p.stock == 0:\n            f(p)\n        g(p)",
            "",
        ),
    ],
)
def test_rows_that_python_filters(code: str, use: str) -> None:
    assert row_reduction(f"def f(wanted, a):\n    {code}\n", 2) == use


@pytest.mark.parametrize(
    ("code", "is_asked"),
    [
        ("if query.count() > 0:\n        return 1", True),
        ("if query.count():\n        return 1", True),
        ("if not query.count():\n        return 1", True),
        ("if user and query.count():\n        return 1", True),
        ("return query.count() >= 1", True),
        ("return await query.count() == 0", True),
        ("return db.execute(text).fetchone()[0] > 0", True),
        ("total = query.count()\n    return total > 0", True),
        ("total = query.count()\n    if total:\n        return 1\n    return total == 0", True),
        ("total = query.count()\n    return total", False),
        ("total = query.count()\n    if total:\n        return total", False),
        ("if query.count() > 1:\n        return 1", False),
        ("return query.count() or 3", False),
        ("return query.count()", False),
        ("return query.count(", False),
        ("if is_full(query.count()):\n        return 1", False),
        ("if math.floor(query.count() / 9) > 0:\n        return 1", False),
        ("n = query.count()\n    if not n:\n        return 1\n    f(**locals())", False),
        ("global n\n    n = query.count()\n    if n == 0:\n        return 1", False),
    ],
)
def test_a_number_that_is_only_compared_with_zero(code: str, is_asked: bool) -> None:
    assert only_tests_existence(f"async def f(query, user):\n    {code}\n", 2) == is_asked


@pytest.mark.parametrize(
    ("code", "is_value"),
    [
        ("Book.objects.values_list('id', flat=True)", True),
        ("Book.objects.values('id')", True),
        ("Book.select(Book.id).tuples()", True),
        ("await Book.all().values_list('id', 'name')", True),
        ("list(books.values())", False),
        ("Book.objects.all()", False),
        ("Book.objects.all(", False),
    ],
)
def test_a_line_that_asks_for_values(code: str, is_value: bool) -> None:
    assert reads_values(f"async def f(books):\n    return {code}\n", 2) == is_value
    assert not reads_values(f"async def f(books):\n    return {code}\n", 3)


class Uses(UnknownSourceLines):
    """Source whose lines have one use of their rows."""

    def __init__(self, use: str) -> None:
        self._use = use

    def row_reduction(self, frame: Frame, attribute: str = "", is_lazy: bool = False) -> str:
        return self._use


def fetched(rows: int, use: str) -> list[Finding]:
    one = aggregate(ROWS, SITE, ns=500 * MS, count=1)._replace(rows=rows)
    found = find_all(Report(profile_of(one)), lambda *_: None, {}, lines=Uses(use))
    return [each for each in found if each.category == "over_fetch"]


@pytest.mark.parametrize(
    ("rows", "use", "saved_ms"),
    [
        (1000, "count", 480),
        (999, "count", 0),
        (1000, "sum", 300),
        (1000, "filter", 450),
        (1000, "", 0),
    ],
)
def test_rows_that_the_program_only_reduces(rows: int, use: str, saved_ms: int) -> None:
    found = fetched(rows, use)
    assert [each.gain_ns for each in found] == ([saved_ms * MS] if saved_ms else [])
    severity = Severity.MEDIUM if use == "filter" else Severity.HIGH
    assert all(each.severity is severity for each in found)
    assert all(bool(each.doubt) == (use == "filter") for each in found)


def test_a_use_has_words_for_each_library() -> None:
    from queryprof.findings.amounts import INSTEAD, ONLY, SAVED
    from queryprof.findings.libraries import NO_OBJECTS

    assert INSTEAD.keys() == ONLY.keys() == SAVED.keys()
    for words in INSTEAD.values():
        assert words.keys() == {"", *NO_OBJECTS}


class Asks(UnknownSourceLines):
    """Source whose lines ask whether there are rows."""

    def only_tests_existence(self, frame: Frame) -> bool:
        return True


COUNT_SQL = "SELECT COUNT(*) FROM job WHERE state = ?"
BY_INDEX = "SEARCH job USING COVERING INDEX job_state (state=?)"


@pytest.mark.parametrize(
    ("sql", "steps", "scanned", "lines", "is_one"),
    [
        (COUNT_SQL, 1000, 0, Asks(), True),
        (COUNT_SQL, 999, 0, Asks(), False),
        (COUNT_SQL, 1000, 1, Asks(), False),
        (COUNT_SQL + " GROUP BY state", 1000, 0, Asks(), False),
        (COUNT_SQL.replace("*", "?"), 1000, 0, Asks(), True),
        (COUNT_SQL.replace("(*)", "(*) AS n"), 1000, 0, Asks(), True),
        (COUNT_SQL.replace("*", "email"), 1000, 0, Asks(), False),  # it may be NULL
        (COUNT_SQL.replace("(*)", "(*) > ?"), 1000, 0, Asks(), False),
        (COUNT_SQL.replace("*", "DISTINCT state"), 1000, 0, Asks(), False),
        ("SELECT state FROM job WHERE state = ?", 1000, 0, Asks(), False),
        (COUNT_SQL, 1000, 0, UnknownSourceLines(), False),
    ],
)
def test_a_count_that_only_asks_for_rows(
    sql: str, steps: int, scanned: int, lines: UnknownSourceLines, is_one: bool
) -> None:
    counted = aggregate(sql, SITE, ns=500 * MS, count=10)._replace(
        rows=10, vm_steps=10 * steps, full_scan_steps=10 * scanned
    )
    profile = replace(profile_of(counted), plans=(Plan(sql, "a.db", BY_INDEX),))
    found = find_all(Report(profile), lambda *_: None, {}, lines=lines)
    asked = [one for one in found if one.category == "over_fetch"]
    assert len(asked) == is_one
    assert all(one.doubt and one.severity is Severity.MEDIUM for one in asked)
