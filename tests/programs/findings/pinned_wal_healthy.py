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
for _row in reader.execute("SELECT text FROM entry").fetchall()[:10]:
    time.sleep(0.12)
    writer.execute("BEGIN")
    writer.executemany("INSERT INTO entry (text) VALUES (?)", [("more" * 200,)] * 800)
    writer.execute("COMMIT")
reader.close()
writer.close()
