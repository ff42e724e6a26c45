import sqlite3
import tempfile
import threading

folder = tempfile.TemporaryDirectory()
path = f"{folder.name}/shop.db"
setup = sqlite3.connect(path)
setup.execute("PRAGMA journal_mode = WAL")
setup.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, stock INTEGER)")
setup.executemany("INSERT INTO item VALUES (?, 0)", [(i,) for i in range(20_000)])
setup.commit()


def read() -> None:
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    for _ in range(5):
        assert db.execute("SELECT sum(stock) FROM item").fetchone()
    db.close()


threads = [threading.Thread(target=read) for _ in range(2)]
for thread in threads:
    thread.start()
with setup:
    setup.executemany("UPDATE item SET stock = 1 WHERE id = ?", [(i,) for i in range(2000)])
for thread in threads:
    thread.join()
setup.close()
