"""Looks up readings of many sensors, 500 at a time: as it should be."""
import sqlite3
from collections import defaultdict
from statistics import fmean


def chunks(ids: list[int], size: int = 500):
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


def readings(db: sqlite3.Connection, ids: list[int]) -> dict[int, list[float]]:
    found = defaultdict(list)
    for chunk in chunks(ids):
        marks = ", ".join("?" * len(chunk))
        query = f"SELECT sensor, celsius FROM reading WHERE sensor IN ({marks})"
        for sensor, celsius in db.execute(query, chunk):
            found[sensor].append(celsius)
    return found


def main() -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE sensor (id INTEGER PRIMARY KEY, site TEXT)")
    db.execute("CREATE TABLE reading (sensor INTEGER, celsius REAL)")
    db.execute("CREATE INDEX reading_sensor ON reading (sensor)")
    db.executemany("INSERT INTO sensor VALUES (?, ?)", ((i, f"s{i % 9}") for i in range(10_000)))
    db.executemany("INSERT INTO reading VALUES (?, ?)", ((i % 10_000, i / 7) for i in range(100_000)))
    ids = [row[0] for row in db.execute("SELECT id FROM sensor WHERE site <> 's3'")]
    print(sum(fmean(values) for values in readings(db, ids).values()))


main()
