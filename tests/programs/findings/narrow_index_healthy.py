import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, kind TEXT, ref INTEGER)")
db.execute("CREATE INDEX item_kind ON item (kind, ref)")
db.executemany(
    "INSERT INTO item VALUES (?, ?, ?)",
    ((n, f"k{n % 60}", n * 7919 % 50_021) for n in range(50_000)),
)


def total(kind: str) -> int:
    """It needs every row that the index finds."""
    return int(db.execute("SELECT sum(ref) FROM item WHERE kind = ?", (kind,)).fetchone()[0])


def shown(number: int) -> tuple[list[tuple[int]], int]:
    query = "SELECT id FROM item WHERE kind = ? AND ref = ?"
    found = db.execute(query, (f"k{number % 60}", number)).fetchall()
    return found, total(f"k{number % 60}")


print(*map(shown, range(60)))
