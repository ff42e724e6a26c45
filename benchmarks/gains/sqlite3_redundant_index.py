"""Two indexes begin with the same column: the wider one alone."""

import sqlite3
import sys
import tempfile
from pathlib import Path

from shared.timed import run

path = str(Path(tempfile.mkdtemp(), "app.db"))
db = sqlite3.connect(path)
db.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, kind INTEGER, at INTEGER)")
db.execute("CREATE INDEX event_kind_at ON event (kind, at)")
if sys.argv[1:] != ["after"]:
    db.execute("CREATE INDEX event_kind ON event (kind)")
db.commit()


def insert() -> None:
    with db:
        for number in range(20_000):
            db.execute("INSERT INTO event (kind, at) VALUES (?, ?)", (number * 7919 % 500, number))


run(insert, insert)
