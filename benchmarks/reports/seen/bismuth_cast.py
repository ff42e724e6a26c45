"""hclivess/bismuth#141. Queries by time are slow: "every time you do a select vs timestamp sqlite
has to convert all text timestamps to a number".

Cause: timestamp is TEXT; cast(timestamp AS numeric) > ? is computed for each row of the ledger, and
no index serves it.

Line: execute in since().

Fix: a REAL column with an index (or an index on the expression).
"""

import sqlite3
from _main import main


def setup():
    db = sqlite3.connect("ledger.db")
    db.executescript("""CREATE TABLE transactions (block_height INTEGER, timestamp TEXT, address TEXT, recipient TEXT, amount TEXT, fee TEXT); CREATE INDEX tx_address ON transactions (address);
      CREATE INDEX tx_time ON transactions (timestamp); CREATE TABLE misc (block_height INTEGER PRIMARY KEY, difficulty TEXT);""")
    with db:
        db.executemany(
            "INSERT INTO transactions VALUES (?,?,?,?,?,?)",
            (
                (
                    i // 3,
                    f"{1493640955 + i * 60.5:.2f}",
                    f"a{i % 900:056}",
                    f"b{i % 700:056}",
                    f"{i % 90}.00000000",
                    "0.01000000",
                )
                for i in range(40_000)
            ),
        )
        db.executemany(
            "INSERT INTO misc VALUES (?,?)", ((i, str(100 + i % 9)) for i in range(13_000))
        )


def since(db, moment):
    return db.execute(
        "SELECT block_height, address, amount FROM transactions WHERE cast(timestamp AS numeric) > ?",
        (moment,),
    ).fetchall()


def balance(db, address):
    return db.execute(
        "SELECT total(amount) - total(fee) FROM transactions WHERE address = ?", (address,)
    ).fetchone()[0]


def difficulty(db, height):
    return db.execute("SELECT difficulty FROM misc WHERE block_height = ?", (height,)).fetchone()


def bad():
    db = sqlite3.connect("ledger.db")
    rows = sum(len(since(db, 1493640955 + (39_800 + n) * 60.5)) for n in range(40))
    return rows, sum(round(balance(db, f"a{n:056}")) for n in range(60)), difficulty(db, 77)


def fixed():
    db = sqlite3.connect("ledger.db")
    db.execute("CREATE INDEX IF NOT EXISTS tx_moment ON transactions (cast(timestamp AS numeric))")
    return bad()


main(setup, bad, fixed)
