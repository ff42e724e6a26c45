"""A write-ahead log: readers go on while one thread writes."""
import os
import threading

import peewee

db = peewee.SqliteDatabase("wal.db", pragmas={"journal_mode": "wal", "synchronous": 0}, timeout=30)


class Reading(peewee.Model):
    buoy = peewee.IntegerField(index=True)
    height = peewee.FloatField()

    class Meta:
        database = db


def write() -> None:
    with db.connection_context():
        for part in range(6):
            rows = [(i % 20, i * part / 90) for i in range(2000)]
            with db.atomic():
                for batch in peewee.chunked(rows, 400):
                    Reading.insert_many(batch, fields=[Reading.buoy, Reading.height]).execute()


def read(found: list[float]) -> None:
    with db.connection_context():
        for buoy in range(10):
            heights = [r[0] for r in Reading.select(Reading.height).where(Reading.buoy == buoy).tuples()]
            found.append(max(heights, default=0.0))


for name in ("wal.db", "wal.db-wal", "wal.db-shm"):
    if os.path.exists(name):
        os.remove(name)
with db.connection_context():
    db.create_tables([Reading])
    Reading.insert_many([(i % 20, i) for i in range(400)], fields=[Reading.buoy, Reading.height]).execute()
found: list[float] = []
threads = [threading.Thread(target=write), threading.Thread(target=read, args=(found,))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(found))
os.remove("wal.db")
