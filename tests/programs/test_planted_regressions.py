"""Regressions planted in a sample project are caught, with the line; harmless changes are not.

The baseline in tests/golden was saved once, by CPython 3.11, and is compared with runs of other
Pythons too.
"""

from __future__ import annotations

import linecache
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

PROJECT = Path(__file__).with_name("shop")
GOLDEN = Path(__file__).parents[1] / "golden" / "shop-baseline.json"
SETTINGS = "[pytest]\nqueryprof_fail_on = counts plans vmsteps stalls\n"
FALSE_ALARM_RUNS = 50
STALL_MS = "1000"
"""A thread waits less than this for its turn on a busy machine. Planted stalls take
twice as long.
"""


@dataclass(frozen=True)
class Change:
    """A change of a file of the project."""

    old: str
    new: str
    file: str = "shop.py"


Check = Callable[..., tuple[int, str]]


@pytest.fixture
def check(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Check the project, with changes, against its baseline. Return exit status and output."""
    monkeypatch.chdir(pytester.path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("QUERYPROF_STALL_MS", STALL_MS)
    Path("pytest.ini").write_text(SETTINGS)
    shutil.copy(GOLDEN, "queryprof-baseline.json")

    def check(*changes: Change, option: str = "--queryprof-check") -> tuple[int, str]:
        for file in PROJECT.glob("*.py"):
            text = file.read_text()
            for change in changes:
                if change.file == file.name:
                    assert change.old in text, f"{change.old!r} is not there to change"
                    text = text.replace(change.old, change.new)
            Path(file.name).write_text(text)
        linecache.clearcache()
        for name in ("shop", "test_shop"):
            sys.modules.pop(name, None)
        plain = ("-q", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:asyncio")
        result = pytester.runpytest_inprocess(*plain, option)
        return int(result.ret), result.stdout.str()

    return check


def line_of(text: str, file: str = "shop.py") -> str:
    """Return the line where this text begins, as messages write it."""
    before, found, _ = Path(file).read_text().partition(text)
    assert found, text
    return f"{file}:{1 + before.count(chr(10))}"


LOST_PREFETCH = Change(
    """    lines = shop.execute(
        f"SELECT orders, price FROM line WHERE orders IN ({places})", orders
    ).fetchall()
""",
    """    lines = []
    for order in orders:
        lines += shop.execute(
            f"SELECT orders, price FROM line WHERE orders IN ({places[0]})", (order,)
        ).fetchall()
""",
)

REGRESSIONS = {
    "an extra query in a loop": (
        Change(
            "    for day in days:\n",
            '    for day in days:\n        shop.execute("SELECT count(*) FROM customer").fetchone()\n',
        ),
        "SELECT count(*) FROM customer",
        "a new statement",
    ),
    "a dropped index": (
        Change("CREATE INDEX customer_email ON customer (email);\n", ""),
        "SELECT id, name FROM customer WHERE email",
        "Was SEARCH customer USING INDEX customer_email (email=?), now SCAN customer",
    ),
    "a function around an indexed column": (
        Change("WHERE email = ?", "WHERE lower(email) = ?"),
        "lower(email)",
        "a new statement",
    ),
    "a lost prefetch": (
        LOST_PREFETCH,
        "lines += shop.execute(",
        "executions 1 -> 8",
    ),
    "a changed collation": (
        Change("email TEXT NOT NULL", "email TEXT NOT NULL COLLATE NOCASE"),
        "SELECT id, name FROM customer WHERE email",
        "",
    ),
    "ten times the rows": (
        Change("DESC LIMIT 5", "DESC LIMIT 50"),
        "SELECT article, price",
        "rows 5 -> 50",
    ),
    "a commit in a loop": (
        Change(
            "for number in range(3)],\n        )\n    shop",
            "for number in range(3)],\n        )\n        shop",
        ),
        "        shop.commit()",
        "COMMIT",
    ),
    "a blocking call in a coroutine": (
        Change(
            "    customer = customer_by_email(shop, email)\n",
            "    import time\n    time.sleep(2)\n    customer = customer_by_email(shop, email)\n",
        ),
        "async def greet",
        "an event loop stalled",
    ),
    "an ORDER BY without its index": (
        Change("ON orders (customer, day)", "ON orders (customer)"),
        'return shop.execute(\n        "SELECT id, day FROM orders',
        "SQLite now sorts for ORDER BY each time",
    ),
    "a doubled executemany": (
        Change(
            '    shop.executemany("INSERT INTO customer (name, email) VALUES (?, ?)", rows)\n',
            "    for _ in range(2):\n"
            '        shop.executemany("INSERT INTO customer (name, email) VALUES (?, ?)", rows)\n',
        ),
        'shop.executemany("INSERT INTO customer',
        "rows 3 -> 6",
    ),
}


@pytest.mark.parametrize("name", REGRESSIONS)
@pytest.mark.repeats
def test_a_planted_regression_is_caught(check: Check, name: str) -> None:
    """--queryprof-check catches it, and prints the line."""
    change, line, reported = REGRESSIONS[name]
    changes = [change]
    if name == "a changed collation":  # of the column: a BINARY comparison then scans
        changes.append(Change("WHERE email = ?", "WHERE email = ? COLLATE BINARY"))
    if name == "a doubled executemany":  # the test itself does not notice
        changes.append(Change("== (42,", "[1:] == (", "test_shop.py"))
        changes.append(Change('org") [1:] == ( "bob")', 'org")[1:] == ("bob",)', "test_shop.py"))
    status, output = check(*changes)
    assert status == 1, output
    assert reported in output
    assert line_of(line) in output


def touching(old: str, new: str, file: str = "shop.py") -> tuple[Change, ...]:
    return (Change(old, new, file),)


HARMLESS = {
    "nothing": (),
    "a renamed function": (
        *touching("customer_by_email", "find_customer"),
        *touching("customer_by_email", "find_customer", "test_shop.py"),
    ),
    "a renamed variable": touching("rows", "pairs"),
    "a renamed parameter": touching("customer: int", "whose: int")
    + touching("(customer,)", "(whose,)")
    + touching("(customer, day)\n", "(whose, day)\n")
    + touching("orders_of(shop, customer)", "orders_of(shop, whose)"),
    "keywords in small letters": touching(
        "SELECT id, name FROM customer WHERE", "select id, name from customer where"
    ),
    "SQL over several lines": touching(
        '"SELECT id, day FROM orders WHERE customer = ? ORDER BY day"',
        '"""\n        SELECT id, day\n          FROM orders\n         WHERE customer = ?\n         ORDER BY day"""',
    ),
    "a comment in SQL": touching("WHERE email = ?", "/* by mail */ WHERE email = ? -- one"),
    "a semicolon": touching('ORDER BY day"', 'ORDER BY day;"'),
    "spaces in SQL": touching("(name, email) VALUES (?, ?)", "(name,email)  VALUES  ( ?,? )"),
    "another literal": touching("LIMIT 5", "LIMIT 4") + touching(">= 5", ">= 4", "test_shop.py"),
    "other names of the result": touching("SELECT orders, price FROM", "SELECT orders, price FROM")
    + touching("for owner, price in lines if owner", "for whose, price in lines if whose"),
    "lines that move": touching('SCHEMA = """', '\n\n# What there is.\n\nSCHEMA = """'),
    "a helper around the query": touching(
        '    return shop.execute("SELECT id, name FROM customer WHERE email = ?", (email,)).fetchone()',
        '    def one():\n        return shop.execute("SELECT id, name FROM customer WHERE email = ?", (email,)).fetchone()\n\n    return one()',
    ),
    "fetchone for fetchall": touching(
        '        "SELECT id, day FROM orders WHERE customer = ? ORDER BY day", (customer,)\n    ).fetchall()',
        '        "SELECT id, day FROM orders WHERE customer = ? ORDER BY day", (customer,)\n    ).fetchmany(1000)',
    ),
    "a cursor for the connection": touching(
        'return shop.execute("SELECT article', 'return shop.cursor().execute("SELECT article'
    ),
    "a savepoint": touching(
        "    orders = [number",
        '    shop.execute("SAVEPOINT s")\n    shop.execute("RELEASE s")\n    orders = [number',
    ),
    "a table more": touching("CREATE INDEX lines", "CREATE TABLE more (a, b);\nCREATE INDEX lines"),
    "reordered tests": (
        Change("def test_latest_lines(shop):", "def test_zzz(shop):", "test_shop.py"),
        Change(
            "def test_invoice(shop):\n    assert set(program.invoice(shop, 3).values()) == {4.5}",
            "def test_latest_lines(shop):\n    assert len(program.latest_lines(shop)) >= 5",
            "test_shop.py",
        ),
        Change(
            "def test_zzz(shop):\n    assert len(program.latest_lines(shop)) >= 5",
            "def test_invoice(shop):\n    assert set(program.invoice(shop, 3).values()) == {4.5}",
            "test_shop.py",
        ),
    ),
    "a test more": touching(
        "def test_nobody",
        "def test_more(shop):\n    shop.execute('SELECT 1')\n\n\ndef test_nobody",
        "test_shop.py",
    ),
    "another fixture": touching("range(40)", "range(60)", "test_shop.py")
    + touching("(42,", "(62,", "test_shop.py"),
}


@pytest.mark.parametrize("name", HARMLESS)
@pytest.mark.repeats
def test_a_harmless_change_raises_nothing(check: Check, name: str) -> None:
    """This holds for any Python; the baseline is of 3.11."""
    status, output = check(*HARMLESS[name])
    assert status == 0, output
    assert "is not in the baseline" not in output


@contextmanager
def a_busy_machine() -> Iterator[None]:
    """Run two computing processes, with as many CPUs."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_no_false_alarm_on_a_busy_machine(check: Check) -> None:
    """There are 0 in 50 runs."""
    with a_busy_machine():
        results = [check() for _ in range(FALSE_ALARM_RUNS)]
    alarms = [output for status, output in results if status]
    assert not alarms, f"{len(alarms)} of {len(results)} runs: {alarms[0]}"


def test_the_baseline_is_what_is_saved_now(check: Check) -> None:
    """Any Python saves the same bytes, given the same SQLite."""
    assert check(option="--queryprof-save")[0] == 0
    saved, golden = (
        re.sub(r' "python_version": ".*",\n', "", path.read_text())
        for path in (Path("queryprof-baseline.json"), GOLDEN)
    )
    if f'"sqlite_version": "{sqlite3.sqlite_version}"' in golden:
        assert saved == golden
