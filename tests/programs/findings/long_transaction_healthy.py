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


def pay() -> None:
    db = sqlite3.connect(path, timeout=60)
    for number in range(4):
        time.sleep(0.1)  # the bank's answer, before the transaction
        with db:
            db.execute("INSERT INTO payment (state) VALUES (?)", (f"charged {number}",))
    db.close()


thread = threading.Thread(target=pay)
thread.start()
thread.join()
