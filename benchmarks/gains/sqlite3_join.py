"""A query for each row of another one: a join."""

from shared.sqlite3_library import library
from shared.timed import run

db = library(2000)


def before() -> list[str]:
    names = []
    for (number,) in db.execute("SELECT author FROM book").fetchall():
        names.append(db.execute("SELECT name FROM author WHERE id = ?", (number,)).fetchone()[0])
    return names


def after() -> list[str]:
    rows = db.execute("SELECT name FROM book JOIN author ON author.id = author")
    return [name for (name,) in rows]


run(before, after)
