# category: index_defeated
# fix: column itself|\(date\(passed\)\)|BETWEEN|>=
import datetime
import os
import sqlite3


class Turnstile:
    def __init__(self, path):
        self.connection = sqlite3.connect(path)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.connection.close()

    def install(self, count):
        self.connection.execute("CREATE TABLE pass (id INTEGER PRIMARY KEY, badge INT, passed TEXT)")
        self.connection.execute("CREATE INDEX pass_passed ON pass (passed)")
        first = datetime.datetime(2023, 1, 1)
        with self.connection:
            self.connection.executemany(
                "INSERT INTO pass (badge, passed) VALUES (?, ?)",
                ((n % 300, str(first + datetime.timedelta(minutes=23 * n))) for n in range(count)),
            )

    def people_on(self, day):
        sql = "SELECT count(DISTINCT badge) FROM pass WHERE date(passed) = ?"
        (count,) = self.connection.execute(sql, (day.isoformat(),)).fetchone()  # culprit
        return count


if os.path.exists("gate.db"):
    os.remove("gate.db")
with Turnstile("gate.db") as gate:
    gate.install(22_000)
    start = datetime.date(2023, 2, 1)
    month = [gate.people_on(start + datetime.timedelta(days=n)) for n in range(60)]
assert all(month)
