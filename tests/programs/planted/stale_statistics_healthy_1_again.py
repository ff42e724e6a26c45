# healthy: the statistics were made again after the load
import hashlib
import os
import sqlite3

if os.path.exists("mill.db"):
    os.remove("mill.db")
db = sqlite3.connect("mill.db")
db.executescript(
    """CREATE TABLE sack (id INTEGER PRIMARY KEY, flour TEXT, buyer INTEGER);
    CREATE INDEX sack_flour ON sack (flour);
    CREATE INDEX sack_buyer ON sack (buyer);"""
)


def load(rows):
    with db:
        db.executemany("INSERT INTO sack (flour, buyer) VALUES (?, ?)", rows)
        db.execute("ANALYZE")


def sacks(flour, buyer):
    sql = "SELECT id FROM sack WHERE flour = ? AND buyer = ?"
    return [number for (number,) in db.execute(sql, (flour, buyer))]


def receipt(buyer):
    return hashlib.pbkdf2_hmac("sha256", repr(sacks("rye", buyer)).encode(), b"mill", 6000).hex()


load([(f"flour{n}", n // 5) for n in range(20)])
load((("rye", "wheat", "oat")[n % 3], n * 7919 % 4001) for n in range(24_000))
assert len([receipt(buyer) for buyer in range(0, 4000, 30)]) == 134
db.close()
