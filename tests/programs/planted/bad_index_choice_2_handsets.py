# category: bad_index_choice|narrow_index
# fix: ANALYZE|optimize|\((network, imei|imei, network)
import os
import sqlite3


class Registry:
    path = "handsets.db"

    def __enter__(self):
        if os.path.exists(self.path):
            os.remove(self.path)
        self.db = sqlite3.connect(self.path)
        self.db.row_factory = sqlite3.Row
        self.db.executescript(
            """CREATE TABLE handset (id INTEGER PRIMARY KEY, imei TEXT, network TEXT, blocked INT);
            CREATE INDEX handset_network ON handset (network);
            CREATE INDEX handset_imei ON handset (imei);"""
        )
        return self

    def __exit__(self, *_):
        self.db.close()

    def enrol(self, count):
        with self.db:
            self.db.executemany(
                "INSERT INTO handset (imei, network, blocked) VALUES (?, ?, 0)",
                ((f"35{n * 7919 % 10**7:07d}", "A1" if n % 30 else "T2") for n in range(count)),
            )

    def lookup(self, network, imeis):
        marks = ", ".join("?" * len(imeis))
        sql = f"SELECT * FROM handset WHERE network = ? AND imei IN ({marks})"
        return {row["imei"]: row for row in self.db.execute(sql, [network, *imeis])}  # culprit


with Registry() as registry:
    registry.enrol(40_000)
    known = 0
    for start in range(1, 2400, 20):
        batch = [f"35{n * 7919 % 10**7:07d}" for n in range(start, start + 20)]
        known += len(registry.lookup("A1", batch))
    assert known == 2320, known
