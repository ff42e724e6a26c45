import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY, item INTEGER, at TEXT, amount REAL)")
rows = [(i, i % 40, f"2026-{i % 12 + 1:02}", i / 3) for i in range(20_000)]
db.executemany("INSERT INTO sale VALUES (?, ?, ?, ?)", rows)


def months() -> list[tuple[str, float]]:
    query = "SELECT upper(at), total(amount * 1.19) FROM sale GROUP BY upper(at)"
    return db.execute(query).fetchall()  # culprit


for _ in range(15):
    assert len(months()) == 12
