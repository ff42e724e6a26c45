# category: full_scan
# fix: CREATE INDEX \w+ ON "?measurement"? \("?station_id"?\)|index on .*station_id
import os
import sqlite3

PATH = "weather.db"


def connect():
    db = sqlite3.connect(PATH)
    db.execute("PRAGMA foreign_keys = ON")
    return db


def build():
    if os.path.exists(PATH):
        os.remove(PATH)
    db = connect()
    db.executescript(
        """
        CREATE TABLE station (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE measurement (
            id INTEGER PRIMARY KEY,
            station_id INTEGER NOT NULL REFERENCES station (id) ON DELETE CASCADE,
            celsius REAL);
        """
    )
    with db:
        db.executemany("INSERT INTO station VALUES (?, ?)", ((n, f"s{n}") for n in range(3000)))
        db.executemany(
            "INSERT INTO measurement (station_id, celsius) VALUES (?, ?)",
            ((n % 3000, n % 41 - 10) for n in range(40_000)),
        )
    db.close()


def retire(db, stations):
    for station in stations:
        db.execute("DELETE FROM station WHERE id = ?", (station,))  # culprit
    db.commit()


build()
db = connect()
retire(db, range(0, 3000, 12))
assert db.execute("SELECT count(*) FROM station").fetchone()[0] == 2750
db.close()
