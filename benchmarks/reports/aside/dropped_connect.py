"""DroppedNeedle/DroppedNeedle#470 (pull request). The web interface takes tens of seconds: "every
store operation opens a new SQLite connection and closes it again ... parses the whole schema"
(927 objects).

Cause: sqlite3.connect() for each operation in execute(): the first statement of each connection
reads and parses the schema, which costs more than the query.

Line: sqlite3.connect (and the first execute) in Store.execute().

Fix: one connection for each thread, kept.
"""

import sqlite3
from contextlib import closing
from _main import main


def setup():
    db = sqlite3.connect("library.db")
    db.execute("BEGIN")
    for number in range(230):
        db.execute(
            f"CREATE TABLE plugin_{number} (id INTEGER PRIMARY KEY, owner INTEGER, name TEXT NOT NULL DEFAULT '', payload TEXT, created INTEGER, updated INTEGER, CHECK (length(name) < 200), UNIQUE (owner, name))"
        )
        db.execute(f"CREATE INDEX plugin_{number}_created ON plugin_{number} (created, owner)")
        db.execute(
            f"CREATE TRIGGER plugin_{number}_touch AFTER UPDATE OF payload ON plugin_{number} BEGIN UPDATE plugin_{number} SET updated = 1 WHERE id = new.id; END"
        )
    db.commit()
    db.executescript(
        "CREATE TABLE sessions (token TEXT PRIMARY KEY, user INTEGER); CREATE TABLE tracks (id INTEGER PRIMARY KEY, album INTEGER, title TEXT); CREATE INDEX tracks_album ON tracks (album);"
    )
    with db:
        db.executemany("INSERT INTO sessions VALUES (?,?)", ((f"t{i}", i) for i in range(300)))
        db.executemany(
            "INSERT INTO tracks VALUES (?,?,?)",
            ((i, i % 1100, f"track {i}") for i in range(13_000)),
        )


class Store:
    def execute(self, sql, *values):
        with closing(sqlite3.connect("library.db")) as db:
            db.row_factory = sqlite3.Row
            return db.execute(sql, values).fetchall()


class KeptStore:
    def __init__(self):
        self.db = sqlite3.connect("library.db")
        self.db.row_factory = sqlite3.Row

    def execute(self, sql, *values):
        return self.db.execute(sql, values).fetchall()


def user_of(store, token):
    return store.execute("SELECT user FROM sessions WHERE token = ?", token)[0]["user"]


def album(store, token, number):
    user_of(store, token)
    return [
        row["title"]
        for row in store.execute("SELECT title FROM tracks WHERE album = ? ORDER BY id", number)
    ]


def run(store):
    return sum(len(album(store, f"t{n}", n * 3)) for n in range(40))


main(setup, lambda: run(Store()), lambda: run(KeptStore()))
