import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, kind TEXT, ref INTEGER)")
db.execute("CREATE INDEX item_kind ON item (kind)")
db.executemany(
    "INSERT INTO item VALUES (?, ?, ?)",
    ((n, f"k{n % 5}", n * 7919 % 50_021) for n in range(50_000)),
)


def find(kind: str, ref: int) -> list[tuple[int]]:
    query = "SELECT id FROM item WHERE kind = ? AND ref = ?"
    return db.execute(query, (kind, ref)).fetchall()  # culprit


for number in range(60):
    find(f"k{number % 5}", number)
