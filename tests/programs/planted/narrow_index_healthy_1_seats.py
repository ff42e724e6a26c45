# healthy: the index leaves 6 rows, of which the second condition takes one
import hashlib
import sqlite3


class Cinema:
    def __init__(self):
        self.db = sqlite3.connect(":memory:")
        self.db.execute("CREATE TABLE seat (id INTEGER PRIMARY KEY, show INTEGER, row TEXT, taken INT)")
        self.db.execute("CREATE INDEX seat_show ON seat (show)")
        rows = ((n // 6, "ABCDEF"[n % 6], n % 2) for n in range(60_000))
        self.db.executemany("INSERT INTO seat (show, row, taken) VALUES (?, ?, ?)", rows)

    def seat(self, show, row):
        sql = "SELECT id, taken FROM seat WHERE show = ? AND row = ?"
        return self.db.execute(sql, (show, row)).fetchone()


def ticket(cinema, show):
    number, taken = cinema.seat(show, "D")
    return hashlib.pbkdf2_hmac("sha256", f"{number}/{taken}".encode(), b"box office", 2500).hex()


cinema = Cinema()
tickets = {ticket(cinema, show) for show in range(0, 10_000, 25)}
assert len(tickets) == 400
