import sqlite3
import tempfile
import time

folder = tempfile.TemporaryDirectory()
path = f"{folder.name}/log.db"
writer = sqlite3.connect(path, isolation_level=None)
writer.execute("PRAGMA journal_mode = WAL")
writer.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, text TEXT)")
writer.execute("BEGIN")
writer.executemany("INSERT INTO entry (text) VALUES (?)", [(f"line {i}",) for i in range(100)])
writer.execute("COMMIT")
reader = sqlite3.connect(path)
rows = reader.execute("SELECT text FROM entry")  # culprit
for _, _row in zip(range(10), rows, strict=False):
    time.sleep(0.12)
    writer.execute("BEGIN")
    writer.executemany("INSERT INTO entry (text) VALUES (?)", [("more" * 200,)] * 800)
    writer.execute("COMMIT")
rows.close()
reader.close()
writer.close()
