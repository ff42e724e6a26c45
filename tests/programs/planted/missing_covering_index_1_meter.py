# category: missing_covering_index|duplicate_query
# fix: covering|\("?device"?, "?kwh"?|keep the result
import os
import sqlite3

PATH = "meter.db"


class MeterStore:
    def __init__(self):
        if os.path.exists(PATH):
            os.remove(PATH)
        self.db = sqlite3.connect(PATH)
        self.db.executescript(
            "CREATE TABLE sample (id INTEGER PRIMARY KEY, device INTEGER, kwh REAL, frame BLOB);"
            "CREATE INDEX sample_by_device ON sample (device);"
        )

    def fill(self, count, devices):
        frame = bytes(700)
        with self.db:
            self.db.executemany(
                "INSERT INTO sample (device, kwh, frame) VALUES (?, ?, ?)",
                ((n % devices, n / 9, frame) for n in range(count)),
            )

    def consumption(self, device):
        row = self.db.execute(  # culprit
            "SELECT min(kwh), max(kwh) FROM sample WHERE device = ?", (device,)  # culprit
        ).fetchone()  # culprit
        return row[1] - row[0]


store = MeterStore()
store.fill(20_000, 100)
bills = [store.consumption(device) for _month in range(36) for device in range(100)]
assert len(bills) == 3600
store.db.close()
