import hashlib
import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY, item INTEGER, at TEXT, amount REAL)")
db.execute("CREATE TABLE month (at TEXT PRIMARY KEY, amount REAL)")
db.execute(
    "CREATE TRIGGER counted AFTER INSERT ON sale BEGIN INSERT INTO month VALUES (new.at, new.amount)"
    " ON CONFLICT (at) DO UPDATE SET amount = amount + excluded.amount; END"
)
rows = [(i, i % 40, f"2026-{i % 12 + 1:02}", i / 3) for i in range(500)]
db.executemany("INSERT INTO sale VALUES (?, ?, ?, ?)", rows)
for _ in range(15):
    assert len(db.execute("SELECT at, amount FROM month").fetchall()) == 12
assert len(hashlib.sha512(b"most of the time is the program's own" * 5_000_000).digest()) == 64
