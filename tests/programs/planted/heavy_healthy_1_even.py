# healthy: 300 statements that all take the same short time
import hashlib
import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE beat (heart INTEGER, ms INTEGER)")
db.execute("CREATE INDEX beat_heart ON beat (heart, ms)")
db.executemany("INSERT INTO beat VALUES (?, ?)", ((n % 300, 600 + n * 31 % 500) for n in range(30_000)))


class Patient:
    def __init__(self, number):
        self.number = number

    def rate(self):
        (mean,) = db.execute("SELECT avg(ms) FROM beat WHERE heart = ?", (self.number,)).fetchone()
        return 60_000 / mean

    def record(self):
        text = f"{self.number}: {self.rate():.1f} bpm"
        return hashlib.pbkdf2_hmac("sha256", text.encode(), b"ward", 2500).hex()


records = [Patient(number).record() for number in range(300)]
assert len(set(records)) == 300
