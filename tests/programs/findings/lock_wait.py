import sqlite3
import tempfile
import threading

folder = tempfile.TemporaryDirectory()
path = f"{folder.name}/shop.db"
setup = sqlite3.connect(path)
setup.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, stock INTEGER)")
setup.executemany("INSERT INTO item VALUES (?, 0)", [(i,) for i in range(60_000)])
setup.commit()
setup.close()
recounts = threading.Event()


def recount() -> None:
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")  # a slow disk would make all of them holders
    for _ in range(10):
        db.execute("UPDATE item SET stock = (SELECT count(*) FROM item) % 7 + stock")  # culprit
        recounts.set()
    db.close()


def sell() -> None:
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")  # a slow disk would make all of them holders
    recounts.wait()
    for number in range(5):
        db.execute("UPDATE item SET stock = stock - 1 WHERE id = ?", (number,))
    db.close()


threads = [threading.Thread(target=work) for work in (recount, sell, sell)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
