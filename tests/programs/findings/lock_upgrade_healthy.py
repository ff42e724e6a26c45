import contextlib
import sqlite3

one, other = (sqlite3.connect("app.db", isolation_level=None, timeout=0) for _ in range(2))
one.execute("PRAGMA journal_mode = WAL")
one.execute("CREATE TABLE IF NOT EXISTS stock (id INTEGER PRIMARY KEY, amount INTEGER)")
one.execute("INSERT OR REPLACE INTO stock VALUES (1, 10)")


def reserve() -> None:
    """It is refused before it reads, and may try again."""
    other.execute("BEGIN IMMEDIATE")
    with contextlib.suppress(sqlite3.OperationalError):
        one.execute("BEGIN IMMEDIATE")
    other.execute("COMMIT")
    one.execute("BEGIN IMMEDIATE")
    amount = one.execute("SELECT amount FROM stock WHERE id = 1").fetchone()[0]
    one.execute("UPDATE stock SET amount = ? WHERE id = 1", (amount - 1,))
    one.execute("COMMIT")


for _ in range(3):
    reserve()
