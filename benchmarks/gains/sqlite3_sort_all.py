"""All rows are returned sorted: an index in that order."""

from shared.sqlite3_events import db
from shared.timed import run


def sorted_events() -> None:
    for kind in range(50):
        db.execute("SELECT text FROM event WHERE kind = ? ORDER BY at", (kind,)).fetchall()


run(sorted_events, sorted_events)
