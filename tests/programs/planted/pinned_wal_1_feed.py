# category: pinned_wal
# fix: fetchall|close the cursor
import os
import sqlite3
import time


class Feed:
    def __init__(self, path):
        self.connection = sqlite3.connect(path)
        self.cursor = None

    def newest(self):
        self.cursor = self.connection.execute("SELECT id, text FROM post ORDER BY id DESC")  # culprit
        return self.cursor.fetchone()


class Author:
    def __init__(self, path):
        self.connection = sqlite3.connect(path, isolation_level=None)

    def write(self, count):
        self.connection.execute("BEGIN")
        self.connection.executemany("INSERT INTO post (text) VALUES (?)", (("x" * 900,) for _ in range(count)))
        self.connection.execute("COMMIT")


if os.path.exists("feed.db"):
    os.remove("feed.db")
author = Author("feed.db")
author.connection.execute("PRAGMA journal_mode = WAL")
author.connection.execute("CREATE TABLE post (id INTEGER PRIMARY KEY, text TEXT)")
author.write(50)
feed = Feed("feed.db")
top = feed.newest()
for _ in range(12):
    author.write(1500)
    time.sleep(0.1)
assert top[0] == 50
assert os.path.getsize("feed.db-wal") > 10_000_000
