import sqlite3
import tempfile

folder = tempfile.TemporaryDirectory()
path = f"{folder.name}/shop.db"
setup = sqlite3.connect(path)
setup.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT)")
setup.executemany("INSERT INTO item VALUES (?, ?)", [(i, f"i{i}") for i in range(100)])
setup.commit()
setup.close()
for _ in range(4):  # one a worker
    db = sqlite3.connect(path)
    assert len(db.execute("SELECT name FROM item").fetchall()) == 100
    db.close()
