"""Rows are sorted to take the first ten: an index in that order."""

from shared.sqlite3_events import db
from shared.timed import run


def latest() -> None:
    for kind in range(50):
        db.execute(
            "SELECT text FROM event WHERE kind = ? ORDER BY at DESC LIMIT 10", (kind,)
        ).fetchall()


run(latest, latest)
