import sqlite3
import tempfile

folder = tempfile.TemporaryDirectory()
path = f"{folder.name}/shop.db"
setup = sqlite3.connect(path)
setup.execute("BEGIN")
for number in range(40):
    setup.execute(f"CREATE TABLE t{number} (id INTEGER PRIMARY KEY, name TEXT)")
setup.executemany("INSERT INTO t1 VALUES (?, ?)", [(i, f"i{i}") for i in range(100)])
setup.commit()
setup.close()


def name(item: int) -> str:
    db = sqlite3.connect(path)  # culprit
    row = db.execute("SELECT name FROM t1 WHERE id = ?", (item,)).fetchone()
    db.close()
    return str(row[0])


assert [name(number % 100) for number in range(500)]
