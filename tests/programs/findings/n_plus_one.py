import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT)")
db.execute("CREATE TABLE book (id INTEGER PRIMARY KEY, author_id INTEGER, title TEXT)")
db.executemany("INSERT INTO author VALUES (?, ?)", [(i, f"a{i}") for i in range(5000)])
db.executemany("INSERT INTO book VALUES (?, ?, ?)", [(i, i % 5000, f"b{i}") for i in range(10_000)])
db.execute("CREATE INDEX book_author ON book (author_id)")


def titles(author: int) -> list[str]:
    rows = db.execute("SELECT title FROM book WHERE author_id = ?", (author,))  # culprit
    return [row[0] for row in rows]


def catalogue() -> dict[str, list[str]]:
    found = {}
    for author, name in db.execute("SELECT id, name FROM author").fetchall():
        found[name] = titles(author)
    return found


assert len(catalogue()) == 5000
