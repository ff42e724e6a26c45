# healthy: the shorter index is UNIQUE, which the longer one cannot promise
import os
import sqlite3

if os.path.exists("iban.db"):
    os.remove("iban.db")
db = sqlite3.connect("iban.db")
db.executescript(
    """CREATE TABLE account (id INTEGER PRIMARY KEY, iban TEXT, branch INTEGER, cents INTEGER);
    CREATE UNIQUE INDEX account_iban ON account (iban);
    CREATE INDEX account_iban_cents ON account (iban, cents);"""
)


def opened(count):
    for n in range(count):
        yield f"CH{n * 7919 % 10**7:019d}", n % 40, n * 3


def balance(iban):
    return db.execute("SELECT cents FROM account WHERE iban = ?", (iban,)).fetchone()[0]


with db:
    db.executemany("INSERT INTO account (iban, branch, cents) VALUES (?, ?, ?)", opened(60_000))
assert balance(f"CH{7919:019d}") == 3
db.close()
