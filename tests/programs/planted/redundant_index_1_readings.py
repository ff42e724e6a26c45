# category: redundant_index
# fix: DROP INDEX "?reading_meter"?\b|Drop reading_meter\b
import os
import sqlite3


class Importer:
    ddl = """
    CREATE TABLE reading (id INTEGER PRIMARY KEY, meter TEXT NOT NULL, at INTEGER, kwh REAL);
    CREATE UNIQUE INDEX reading_meter_at ON reading (meter, at);
    CREATE INDEX reading_meter ON reading (meter);
    """

    def __init__(self, path):
        if os.path.exists(path):
            os.remove(path)
        self.db = sqlite3.connect(path)
        self.db.executescript(self.ddl)

    def take(self, rows):
        with self.db:
            self.db.executemany("INSERT INTO reading (meter, at, kwh) VALUES (?, ?, ?)", rows)  # culprit

    def latest(self, meter):
        sql = "SELECT max(at) FROM reading WHERE meter = ?"
        return self.db.execute(sql, (meter,)).fetchone()[0]


def day(number):
    for k in range(6000):
        yield f"DE-METER-{k * 7919 % 1_000_003:010d}", number, k / 7


importer = Importer("readings.db")
for number in range(12):
    importer.take(day(number))
assert importer.latest("DE-METER-0000000000") == 11
importer.db.close()
