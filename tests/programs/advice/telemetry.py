"""Telemetry with an index that fits and one that misleads: run `telemetry.py FILE fill`, then
`telemetry.py FILE`.
"""

import random
import sqlite3
import sys

ROWS = 100_000
DEVICES, KINDS = 2_000, 6


def fill(connection: sqlite3.Connection, draw: random.Random) -> None:
    connection.executescript(
        """
        CREATE TABLE device (id INTEGER PRIMARY KEY, name TEXT, site TEXT);
        CREATE TABLE reading (id INTEGER PRIMARY KEY, device INTEGER, kind TEXT, at INTEGER, value REAL, valid INTEGER);
        CREATE INDEX reading_at ON reading (at);
        CREATE INDEX reading_valid ON reading (valid);
        """
    )
    connection.executemany(
        "INSERT INTO device VALUES (?, ?, ?)",
        ((i, f"device {i}", f"site {i % 40}") for i in range(DEVICES)),
    )
    connection.executemany(
        "INSERT INTO reading VALUES (?, ?, ?, ?, ?, ?)",
        (
            (i, draw.randrange(DEVICES), f"kind {draw.randrange(KINDS)}", i * 10, draw.random(), 1)
            for i in range(ROWS)
        ),
    )


def work(connection: sqlite3.Connection, draw: random.Random) -> None:
    def ask(sql: str, *values: object) -> list[tuple[int, ...]]:
        return connection.execute(sql, values).fetchall()

    for _ in range(20):
        ask(
            "SELECT at, value FROM reading WHERE device = ? AND kind = ? AND valid = 1 ORDER BY at DESC LIMIT 50",
            draw.randrange(DEVICES),
            f"kind {draw.randrange(KINDS)}",
        )
        ask("SELECT max(at) FROM reading WHERE device = ? AND valid = 1", draw.randrange(DEVICES))
    for _ in range(5):
        ask(
            "SELECT kind, avg(value) FROM reading WHERE device IN (?, ?, ?) AND valid = 1 GROUP BY kind",
            *(draw.randrange(DEVICES) for _ in range(3)),
        )
        ask("SELECT count(*) FROM reading WHERE at BETWEEN ? AND ?", 500_000, 510_000)
        ask(
            "SELECT d.site, count(*) FROM device d JOIN reading r ON r.device = d.id WHERE d.site = ? AND"
            " r.valid = 1 GROUP BY d.site",
            f"site {draw.randrange(40)}",
        )
        for _ in range(10):
            ask(
                "INSERT INTO reading (device, kind, at, value, valid) VALUES (?, ?, ?, ?, 1)",
                1,
                "kind 1",
                2_000_000,
                0.5,
            )
    connection.commit()


database = sqlite3.connect(sys.argv[1])
if "fill" in sys.argv:
    fill(database, random.Random(1))
    database.commit()
else:
    work(database, random.Random(2))
database.close()
