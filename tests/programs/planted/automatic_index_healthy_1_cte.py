# healthy: the index built is of a grouped subquery with 60 rows, which no CREATE INDEX can serve
import hashlib
import sqlite3


def open_db():
    db = sqlite3.connect(":memory:")
    db.executescript(
        "CREATE TABLE farm (id INTEGER PRIMARY KEY, code TEXT, region INTEGER);"
        "CREATE TABLE yield (id INTEGER PRIMARY KEY, code TEXT, tons INTEGER);"
        "CREATE INDEX yield_code ON yield (code, tons);"
    )
    db.executemany("INSERT INTO farm VALUES (?, ?, ?)", ((n, f"F{n}", n % 4) for n in range(60)))
    db.executemany(
        "INSERT INTO yield (code, tons) VALUES (?, ?)", ((f"F{n % 60}", n % 9) for n in range(1200))
    )
    return db


def region_totals(db, region):
    return db.execute(
        """WITH total AS MATERIALIZED (SELECT code, sum(tons) AS tons FROM yield GROUP BY code)
        SELECT farm.code, total.tons FROM farm LEFT JOIN total ON total.code = farm.code
        WHERE farm.region = ?""",
        (region,),
    ).fetchall()


def certificate(farm):
    return hashlib.pbkdf2_hmac("sha256", repr(farm).encode(), b"organic", 12_000).hex()


db = open_db()
papers = [certificate(farm) for region in range(4) for farm in region_totals(db, region)]
assert len(papers) == 60
