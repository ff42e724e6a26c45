import sqlite3
import tempfile
import threading
import time

folder = tempfile.TemporaryDirectory()
path = f"{folder.name}/shop.db"
setup = sqlite3.connect(path)
setup.execute("CREATE TABLE payment (id INTEGER PRIMARY KEY, state TEXT)")
setup.commit()
setup.close()


def charge(number: int) -> str:
    time.sleep(0.15)  # the bank's answer
    return f"charged {number}"


def pay() -> None:
    db = sqlite3.connect(path, timeout=60)
    for number in range(4):
        with db:
            db.execute("INSERT INTO payment (state) VALUES ('open')")  # culprit
            db.execute("UPDATE payment SET state = ? WHERE id = ?", (charge(number), number))
    db.close()


def report() -> None:
    db = sqlite3.connect(path, timeout=60, isolation_level=None)
    for number in range(3):
        time.sleep(0.1)
        db.execute("INSERT INTO payment (state) VALUES (?)", (f"report {number}",))
    db.close()


threads = [threading.Thread(target=work) for work in (pay, report)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
