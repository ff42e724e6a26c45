"""Measure the cost of `pytest --queryprof` on a suite of 500 small database tests.

    python benchmarks/pytest_plugin.py [--rounds N]

Each round runs the suite without the plugin (-p no:queryprof), with the plugin off, with
--queryprof and with --queryprof-check, in a changing order. The figure is the CPU time of the
process and its children. Each run has its own empty directory for files, so that it does not clean
up after the previous run.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

SUITE = '''
import sqlite3
import pytest

SCHEMA = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, total REAL);
CREATE INDEX orders_of_customer ON orders (customer_id);
"""

@pytest.fixture
def db(tmp_path):
    connection = sqlite3.connect({database})
    connection.executescript(SCHEMA)
    connection.executemany("INSERT INTO customer VALUES (?, ?, ?)",
                           [(i, f"name {{i}}", f"city {{i % 7}}") for i in range(50)])
    connection.executemany("INSERT INTO orders VALUES (?, ?, ?)",
                           [(i, i % 50, i * 1.5) for i in range(200)])
    connection.commit()
    yield connection
    connection.close()

def total(db, customer):
    return db.execute("SELECT sum(total) FROM orders WHERE customer_id = ?", (customer,)).fetchone()

@pytest.mark.parametrize("number", range(500))
def test_orders(db, number):
    for customer in range(10):
        assert total(db, customer)[0] > 0
    assert len(db.execute("SELECT * FROM customer WHERE city = ?", ("city 3",)).fetchall()) == 7
    db.execute("UPDATE customer SET name = 'new' WHERE id = ?", (number % 50,))
    db.execute("DELETE FROM orders WHERE customer_id = ?", (number % 50,))
    db.commit()
    assert db.execute("SELECT count(*) FROM orders").fetchone() == (196,)
'''
WAYS = {
    "without the plugin": ("-p", "no:queryprof"),
    "off": (),
    "--queryprof": ("--queryprof",),
    "--queryprof-check": ("--queryprof-check",),
}


def run_s(directory: str, options: tuple[str, ...]) -> float:
    """Return the CPU seconds of one pytest run."""
    before = os.times()
    files = f"--basetemp={directory}/files"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", files, *options]
    result = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    after = os.times()
    shutil.rmtree(f"{directory}/files", ignore_errors=True)  # pytest may have removed it
    if result.returncode:
        sys.exit(result.stdout[-3000:] + result.stderr)
    return (after.children_user + after.children_system) - (
        before.children_user + before.children_system
    )


def measure(database: str, rounds: int) -> None:
    """Print the median of each variant, and its ratio to the first."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "test_suite.py").write_text(SUITE.format(database=database))
        run_s(directory, ("--queryprof-save",))
        times: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way in random.sample(list(WAYS), len(WAYS)):
                times[way].append(run_s(directory, WAYS[way]))
    bare = times["without the plugin"]
    for way, values in times.items():
        ratio = median(value / base for value, base in zip(values, bare, strict=True))
        print(
            f"  {way:<20} median {median(values):6.2f} s  x{ratio:.3f}"
            f"   minimum {min(values):6.2f} s  x{min(values) / min(bare):.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    for title, database in (("in memory", '":memory:"'), ("in files", 'tmp_path / "x.db"')):
        print(f"500 tests, databases {title}: CPU time, median of {rounds} rounds")
        measure(database, rounds)


if __name__ == "__main__":
    main()
