"""A twentieth of a table is added up: an index on what is compared."""

import sqlite3
import sys

from shared.timed import run

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY, state TEXT, total REAL, created TEXT)")
db.executemany(
    "INSERT INTO sale VALUES (?, ?, ?, ?)",
    [(n, f"s{n * 7919 % 20}", n / 2, f"2024-{n}") for n in range(40_000)],
)
if sys.argv[1:] == ["after"]:
    db.execute("CREATE INDEX sale_state ON sale (state)")


def add_up() -> None:
    for number in range(20):
        db.execute(
            "SELECT total(total), max(created) FROM sale WHERE state = ?", (f"s{number}",)
        ).fetchone()


run(add_up, add_up)
