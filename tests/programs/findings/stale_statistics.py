import sqlite3

db = sqlite3.connect("app.db")
db.executescript(
    "CREATE TABLE IF NOT EXISTS chunk (id INTEGER PRIMARY KEY, path TEXT, kind TEXT);"
    "CREATE INDEX IF NOT EXISTS chunk_path ON chunk (path);"
    "CREATE INDEX IF NOT EXISTS chunk_kind ON chunk (kind);"
    "DELETE FROM chunk; INSERT INTO chunk VALUES (0, 'a', 'x'); ANALYZE;"
)
rows = ((f"p{n}", "x" if n % 50 else "y") for n in range(40_000))
with db:
    db.executemany("INSERT INTO chunk (path, kind) VALUES (?, ?)", rows)
db.close()
db = sqlite3.connect("app.db")


def search(path: str) -> list[tuple[int]]:
    query = "SELECT id FROM chunk WHERE path = ? AND kind = ?"
    return db.execute(query, (path, "x")).fetchall()  # culprit


for number in range(40):
    search(f"p{number}")
db.close()
