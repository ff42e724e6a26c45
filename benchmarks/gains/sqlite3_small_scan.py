"""A small table is read from end to end for one row, often: an index."""

import sys

from shared.sqlite3_library import library
from shared.timed import run

db = library(400)
if sys.argv[1:] == ["after"]:
    db.execute("CREATE INDEX book_author ON book (author)")


def titles() -> list[str]:
    found = []
    for number in range(5000):
        rows = db.execute("SELECT title FROM book WHERE author = ?", (number % 50 + 1,))
        found.append(rows.fetchone()[0])
    return found


run(titles, titles)
