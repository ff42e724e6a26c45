import sqlite3

db = sqlite3.connect(":memory:", isolation_level=None)
db.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, score INTEGER, level TEXT)")
rows = [(number, number % 90, "new") for number in range(20_000)]
db.executemany("INSERT INTO account VALUES (?, ?, ?)", rows)
db.execute("BEGIN")
for id_, score in db.execute("SELECT id, score FROM account").fetchall():
    level = "gold" if score > 60 else "silver"
    db.execute("UPDATE account SET level = ? WHERE id = ?", (level, id_))  # culprit
db.execute("COMMIT")
