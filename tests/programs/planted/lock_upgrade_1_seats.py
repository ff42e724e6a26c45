# category: lock_upgrade
# fix: IMMEDIATE
import os
import sqlite3
import threading

PATH = "seats.db"
turn = threading.Barrier(2)


class Cinema:
    def __init__(self):
        self.db = sqlite3.connect(PATH, timeout=2, isolation_level=None)
        self.refused = 0

    def reserve(self, seat, name):
        self.db.execute("BEGIN")
        try:
            taken = self.db.execute("SELECT guest FROM seat WHERE id = ?", (seat,)).fetchone()[0]
            turn.wait()  # both have read
            if name == "second":
                turn.wait()  # the first one has written
            if taken is None:
                self.db.execute("UPDATE seat SET guest = ? WHERE id = ?", (name, seat))  # culprit
            self.db.execute("COMMIT")
        except sqlite3.OperationalError:
            self.refused += 1
            self.db.execute("ROLLBACK")
        if name == "first":
            turn.wait()


def sell(name, results):
    cinema = Cinema()
    for seat in range(40):
        cinema.reserve(seat, name)
    results[name] = cinema.refused
    cinema.db.close()


if os.path.exists(PATH):
    os.remove(PATH)
setup = sqlite3.connect(PATH, isolation_level=None)
setup.execute("PRAGMA journal_mode = WAL")
setup.execute("CREATE TABLE seat (id INTEGER PRIMARY KEY, guest TEXT)")
setup.execute("BEGIN")
setup.executemany("INSERT INTO seat VALUES (?, NULL)", ((n,) for n in range(40)))
setup.execute("COMMIT")
results = {}
threads = [threading.Thread(target=sell, args=(name, results)) for name in ("first", "second")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert results == {"first": 0, "second": 40}, results
