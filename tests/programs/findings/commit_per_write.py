import sqlite3
import tempfile

folder = tempfile.TemporaryDirectory()
db = sqlite3.connect(f"{folder.name}/log.db")
db.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, text TEXT)")


def log(text: str) -> None:
    db.execute("INSERT INTO entry (text) VALUES (?)", (text,))  # culprit
    db.commit()


for number in range(300):
    log(f"line {number}")
db.close()
