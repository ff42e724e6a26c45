import sqlite3
import tempfile

folder = tempfile.TemporaryDirectory()
db = sqlite3.connect(f"{folder.name}/shop.db")
db.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY, day INTEGER, amount REAL, note TEXT)")
rows = [(i, i * 7919 % 100, i / 7, "x" * 200) for i in range(40_000)]
db.executemany("INSERT INTO sale VALUES (?, ?, ?, ?)", rows)
db.execute("CREATE INDEX sale_day ON sale (day)")
db.commit()


def turnover(day: int) -> float:
    query = "SELECT sum(amount) FROM sale WHERE day = ?"
    return float(db.execute(query, (day,)).fetchone()[0])  # culprit


assert all(turnover(day) for day in range(100))
db.close()
