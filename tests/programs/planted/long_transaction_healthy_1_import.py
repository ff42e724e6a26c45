"""One program alone imports all in one transaction and computes between: nobody waits for it."""
import hashlib
import os
import sqlite3


def fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode() * 1500).hexdigest()


def load(db: sqlite3.Connection, texts) -> None:
    with db:
        rows = ((number, text, fingerprint(text)) for number, text in enumerate(texts))
        db.executemany("INSERT INTO poem VALUES (?, ?, ?)", rows)


if os.path.exists("poems.db"):
    os.remove("poems.db")
db = sqlite3.connect("poems.db")
db.execute("CREATE TABLE poem (id INTEGER PRIMARY KEY, text TEXT, digest TEXT)")
load(db, (f"the rose is red {number}" for number in range(12_000)))
print(db.execute("SELECT count(*) FROM poem").fetchone())
db.close()
os.remove("poems.db")
