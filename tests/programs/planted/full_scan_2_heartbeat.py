# category: full_scan
# fix: CREATE INDEX \w+ ON probe \("?serial"?\)|index on what it compares: serial
import random
import sqlite3


class Fleet:
    def __init__(self, path=":memory:"):
        self.conn = sqlite3.connect(path)
        self.conn.execute(
            "CREATE TABLE probe (id INTEGER PRIMARY KEY, serial TEXT NOT NULL, seen INTEGER, volt REAL)"
        )

    def load(self, serials):
        with self.conn:
            self.conn.executemany(
                "INSERT INTO probe (serial, seen, volt) VALUES (?, 0, 3.3)", ((s,) for s in serials)
            )

    def touch(self, beat):
        serial, at, volt = beat
        done = self.conn.execute(  # culprit
            "UPDATE probe SET seen = ?, volt = ? WHERE serial = ?", (at, volt, serial)  # culprit
        )  # culprit
        return done.rowcount

    def take(self, beats):
        with self.conn:
            return sum(self.touch(beat) for beat in beats)


def beats(number):
    draw = random.Random(5)
    for at in range(number):
        yield f"SN-{draw.randrange(30_000):06x}", at, 3 + draw.random()


fleet = Fleet()
fleet.load(f"SN-{n:06x}" for n in range(30_000))
assert fleet.take(beats(350)) == 350
