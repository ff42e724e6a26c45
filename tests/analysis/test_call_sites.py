"""Call sites: which functions are database helpers, and who calls them."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import CodeType

import pytest
from analysis.by_hand import MAIN, QUERY, aggregate
from hypothesis import given
from hypothesis import strategies as st

import queryprof
from queryprof.analysis.call_sites import call_site, find_helpers
from queryprof.analysis.report import Report
from queryprof.model import Aggregate, Frame

pytestmark = pytest.mark.once


def through_helper(number: int, caller: str, ns: int = 100) -> Aggregate:
    return aggregate(f"S{number}", (QUERY, Frame(caller, "/app/main.py", 20 + number), MAIN), ns=ns)


def test_a_database_helper_is_seen_through() -> None:
    """If most statements go through one function, its callers are ranked and the function is shown
    as a helper.
    """
    aggregates = [through_helper(n, f"view{n}") for n in range(5)]
    helpers = find_helpers(aggregates)
    assert helpers == {("/app/db.py", "query")}
    site = call_site(aggregates[0].path, helpers)
    assert site.frame is not None
    assert site.frame.function == "view0"
    assert site.helpers == (QUERY,)
    assert site.callers == (MAIN,)


def test_a_function_with_one_caller_or_few_statements_is_no_helper() -> None:
    """A busy function of the program itself stays a call site."""
    assert find_helpers([through_helper(n, "view") for n in range(5)]) == frozenset()
    assert find_helpers([through_helper(n, f"view{n}") for n in range(3)]) == frozenset()
    assert call_site((), frozenset()).frame is None


def test_a_helper_of_a_helper_is_seen_through_too() -> None:
    """db.query() calling db.run(): both are helpers."""
    run = Frame("run", "/app/db.py", 1)
    aggregates = [
        aggregate(
            f"S{n}",
            (
                run,
                QUERY if n % 2 else Frame("one", "/app/db.py", 7),
                Frame(f"view{n}", "/app/main.py", n),
            ),
        )
        for n in range(12)
    ]
    helpers = find_helpers(aggregates)
    assert ("/app/db.py", "run") in helpers


def frame(function: str, line: int = 1) -> Frame:
    return Frame(function, "/app/db.py", line)


@given(
    depth=st.integers(1, 4),
    views=st.integers(4, 30),
    shared=st.integers(0, 2),
    lines=st.integers(1, 2),
)
def test_helpers_of_any_depth_are_seen_through(
    depth: int, views: int, shared: int, lines: int
) -> None:
    """In a chain of helpers, some views have a statement of their own and others share one."""
    chain = tuple(frame(f"helper{n}", 5) for n in range(depth))
    aggregates = [
        aggregate(
            statement,
            (
                *chain[:-1],
                frame(chain[-1].function, 5 + number % lines),
                frame(f"view{number}"),
                MAIN,
            ),
        )
        for number in range(views)
        for statement in (f"S{number}", *(f"COMMON{k}" for k in range(shared)))
    ]
    helpers = find_helpers(aggregates)
    assert helpers == {("/app/db.py", helper.function) for helper in chain}
    sites = [call_site(a.path, helpers) for a in aggregates]
    assert {s.frame.function for s in sites if s.frame} == {f"view{n}" for n in range(views)}
    assert {len(s.helpers) for s in sites} == {depth}


@given(callers=st.integers(1, 20), statements=st.integers(1, 20), depth=st.integers(1, 3))
def test_a_function_with_its_own_statements_is_no_helper(
    callers: int, statements: int, depth: int
) -> None:
    """A function with one line per statement is no helper, however it is called."""
    behind = tuple(frame(f"step{n}") for n in range(depth))
    own = [
        aggregate(f"S{n}", (frame("load", n), *behind, frame(f"view{c}"), MAIN))
        for n in range(statements)
        for c in range(callers)
    ]
    assert find_helpers(own) == frozenset()
    branches = [
        aggregate(f"S{n}", (frame("load", n), frame(f"view{n % callers}"), MAIN))
        for n in range(statements * 4)
    ]
    assert find_helpers(branches) == frozenset(), "each caller takes another branch of it"
    loop = [
        aggregate(f"S{n}", (frame("migrate", 7), *behind, frame(f"view{c}"), MAIN))
        for n in range(statements)
        for c in range(callers)
    ]
    assert find_helpers(loop) == frozenset(), "one line runs the same list for all callers"


PROGRAM_1 = """
def raw(sql): return conn.execute(sql).fetchall()
def query(sql):
    return raw(sql)
def f1(): return query("SELECT 1 FROM t1")
def f2(): return query("SELECT 1 FROM t2")
def f3(): return query("SELECT 1 FROM t3")
def f4(): return query("SELECT 1 FROM t4")
def f5(): return query("SELECT 1 FROM t5")
def f6(): return query("SELECT 1 FROM t6")
def main():
    for f in (f1, f2, f3, f4, f5, f6): f()
main()
"""
PROGRAM_2 = """
def all_rows(sql): return conn.execute(sql).fetchall()
def one(sql): return conn.execute(sql).fetchone()
def f1(): return all_rows("SELECT 1 FROM t1"), one("SELECT 2 FROM t1")
def f2(): return all_rows("SELECT 1 FROM t2"), one("SELECT 2 FROM t2")
def f3(): return all_rows("SELECT 1 FROM t3"), one("SELECT 2 FROM t3")
def f4(): return all_rows("SELECT 1 FROM t4"), one("SELECT 2 FROM t4")
f1(); f2(); f3(); f4()
"""
PROGRAM_3 = """
class Store:
    def run(self, sql): return conn.execute(sql)
    def rows(self, sql): return self.run(sql).fetchall()
    def one(self, sql): return self.run(sql).fetchone()
    def write(self, sql): self.run(sql)
store = Store()
def f1(): store.rows("SELECT 1 FROM t1"); store.one("SELECT 2 FROM t1"); store.write("DELETE FROM t1")
def f2(): store.rows("SELECT 1 FROM t2"); store.one("SELECT 2 FROM t2"); store.write("DELETE FROM t2")
def f3(): store.rows("SELECT 1 FROM t3"); store.one("SELECT 2 FROM t3"); store.write("DELETE FROM t3")
def f4(): store.rows("SELECT 1 FROM t4"); store.one("SELECT 2 FROM t4"); store.write("DELETE FROM t4")
f1(); f2(); f3(); f4()
"""
PROGRAM_4 = """
def report():
    for n in range(1, 7):
        conn.execute(f"SELECT 1 FROM t{n}").fetchall()
def small(): conn.execute("SELECT 2 FROM t1")
def main():
    report()
    small()
def again(): report()
main()
again()
"""


@pytest.mark.parametrize(
    ("program", "sites", "helpers"),
    [
        (PROGRAM_1, {"f1", "f2", "f3", "f4", "f5", "f6"}, {"raw", "query"}),
        (PROGRAM_2, {"f1", "f2", "f3", "f4"}, {"all_rows", "one"}),
        (
            PROGRAM_3,
            {"f1", "f2", "f3", "f4"},
            {"Store.run", "Store.rows", "Store.one", "Store.write"},
        ),
        (PROGRAM_4, {"report", "small"}, set()),
    ],
)
def test_real_programs(program: str, sites: set[str], helpers: set[str], tmp_path: Path) -> None:
    """Finds nested helpers, sibling helpers and a class of helpers, and none in a program without
    helpers.
    """
    conn = sqlite3.connect(":memory:")
    for number in range(1, 7):
        conn.execute(f"CREATE TABLE t{number} (a)")
    code: CodeType = compile(program, str(Path(__file__).parent / "program.py"), "exec")
    with queryprof.profile() as recording:
        exec(code, {"conn": conn})
    conn.close()
    found = [b.site for b in Report(recording.profile).ranking.bottlenecks if " t" in b.statement]
    assert {site.frame.function for site in found if site.frame} == sites
    seen_through = find_helpers(recording.profile.aggregates)
    assert {function for _, function in seen_through} == helpers
