# category: missing_covering_index
# fix: \("?region"?, "?litres"?
"""What each region of a water board used, by which limits are set again and again."""

import sqlite3


class Board:
    def __init__(self, connection):
        self.connection = connection

    def above(self, limit):
        rows = self.connection.execute(  # culprit
            "SELECT region, sum(litres) FROM reading GROUP BY region HAVING sum(litres) > ?", (limit,)
        )
        return dict(rows.fetchall())

    def record(self, meter, litres):
        self.connection.execute("UPDATE reading SET litres = ? WHERE id = ?", (litres, meter))


connection = sqlite3.connect(":memory:")
connection.execute(
    "CREATE TABLE reading (id INTEGER PRIMARY KEY, meter TEXT, region INTEGER, litres INTEGER, note TEXT)"
)
connection.executemany(
    "INSERT INTO reading (meter, region, litres, note) VALUES (?, ?, ?, ?)",
    ((f"m{n}", n * 7919 % 211, n % 997, "read from the street") for n in range(30_000)),
)
board = Board(connection)
for day in range(40):
    board.record(day + 1, day)
    assert board.above(day * 100)
