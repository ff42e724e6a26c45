# healthy: the reader fetches all rows before its slow work, so that the log can be reset
import os
import sqlite3
import time

if os.path.exists("log.db"):
    os.remove("log.db")
writer = sqlite3.connect("log.db", isolation_level=None)
writer.execute("PRAGMA journal_mode = WAL")
writer.execute("CREATE TABLE line (id INTEGER PRIMARY KEY, text TEXT)")
writer.executemany("INSERT INTO line (text) VALUES (?)", ())


def append(count):
    writer.execute("BEGIN")
    writer.executemany("INSERT INTO line (text) VALUES (?)", (("x" * 400,) for _ in range(count)))
    writer.execute("COMMIT")


class Tail:
    def __init__(self, path):
        self.db = sqlite3.connect(path)

    def last(self, count):
        rows = self.db.execute("SELECT text FROM line ORDER BY id DESC LIMIT ?", (count,)).fetchall()
        return [text for (text,) in rows]


append(100)
tail = Tail("log.db")
for text in tail.last(12):
    time.sleep(0.07)  # the terminal is slow
    append(200)
