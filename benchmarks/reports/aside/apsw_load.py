"""rogerbinns/apsw#195. An import that used pysqlite is "insanely slow" with APSW: "each insert is
its own transaction, which requires disk syncing".

Cause: no transaction: APSW begins none by itself, so each INSERT in load() commits and syncs.

Line: cursor.execute of the INSERT in load().

Fix: `with db:` (one transaction) around the loop.
"""

import contextlib
import apsw
from _main import main


def setup():
    db = apsw.Connection("completion.db")
    db.execute("""CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT UNIQUE, mtime INTEGER);
      CREATE TABLE symbols (id INTEGER PRIMARY KEY, file INTEGER, name TEXT, kind TEXT, line INTEGER); CREATE INDEX symbols_name ON symbols (name);
      CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT); INSERT INTO settings VALUES ('language', 'python')""")


def scan():
    for number in range(12):
        yield (
            f"/project/module{number}.py",
            [(f"function_{number}_{k}", "function", k * 9) for k in range(14)],
        )


def file_id(db, path):
    return db.execute(
        "INSERT INTO files (path, mtime) VALUES (?, 0) RETURNING id", (path,)
    ).fetchall()[0][0]


def load(db):
    cursor = db.cursor()
    for path, symbols in scan():
        number = file_id(db, path)
        for name, kind, line in symbols:
            cursor.execute(
                "INSERT INTO symbols (file, name, kind, line) VALUES (?, ?, ?, ?)",
                (number, name, kind, line),
            )


def lookup(db, name):
    return db.execute(
        "SELECT path, line FROM symbols JOIN files ON files.id = file WHERE name = ?", (name,)
    ).fetchall()


def run(transaction):
    db = apsw.Connection("completion.db")
    assert db.execute("SELECT value FROM settings WHERE name = 'language'").fetchall() == [
        ("python",)
    ]
    with db if transaction else contextlib.nullcontext():
        load(db)
    return sum(len(lookup(db, f"function_{n % 12}_{n % 14}")) for n in range(200)), db.execute(
        "SELECT count(*) FROM symbols"
    ).fetchall()[0][0]


main(setup, lambda: run(False), lambda: run(True))
