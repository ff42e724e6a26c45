# healthy: lower() is on a column of the six rows that another index leaves
import hashlib
import os
import sqlite3

if os.path.exists("folders.db"):
    os.remove("folders.db")
db = sqlite3.connect("folders.db")
db.executescript(
    """CREATE TABLE folder (id INTEGER PRIMARY KEY, owner INTEGER, name TEXT);
    CREATE INDEX folder_owner ON folder (owner);
    CREATE INDEX folder_name ON folder (name);"""
)
with db:
    db.executemany(
        "INSERT INTO folder (owner, name) VALUES (?, ?)",
        ((n // 6, f"Folder {n % 6}") for n in range(12_000)),
    )


class Share:
    def __init__(self, owner):
        self.owner = owner

    def folder(self, name):
        sql = "SELECT id FROM folder WHERE owner = ? AND lower(name) = lower(?)"
        return db.execute(sql, (self.owner, name)).fetchone()[0]

    def link(self, name):
        return hashlib.pbkdf2_hmac("sha256", b"%d" % self.folder(name), b"share", 8000).hex()


links = {Share(owner).link("FOLDER 4") for owner in range(0, 2000, 10)}
assert len(links) == 200
db.close()
