import sqlite3

one, other = (sqlite3.connect("app.db", isolation_level=None, timeout=5) for _ in range(2))
one.execute("PRAGMA journal_mode = WAL")
one.execute("CREATE TABLE IF NOT EXISTS stock (id INTEGER PRIMARY KEY, amount INTEGER)")
one.execute("INSERT OR REPLACE INTO stock VALUES (1, 10)")


def reserve() -> None:
    one.execute("BEGIN")
    amount = one.execute("SELECT amount FROM stock WHERE id = 1").fetchone()[0]
    other.execute("BEGIN IMMEDIATE")
    try:
        one.execute("UPDATE stock SET amount = ? WHERE id = 1", (amount - 1,))  # culprit
    except sqlite3.OperationalError:
        one.execute("ROLLBACK")
    other.execute("COMMIT")


for _ in range(3):
    reserve()
