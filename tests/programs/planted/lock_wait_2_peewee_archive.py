# category: lock_wait
# fix: less in each|one thread|write-ahead|WAL
import os
import threading

import peewee

db = peewee.SqliteDatabase("shop.db", pragmas={"synchronous": 0}, timeout=60)
begun = threading.Event()


class Order(peewee.Model):
    state = peewee.CharField()
    cents = peewee.IntegerField()

    class Meta:
        database = db


def nightly() -> None:
    with db.connection_context(), db.atomic("IMMEDIATE"):  # culprit
        begun.set()
        for percent in range(5):
            raised = Order.cents + Order.cents * percent / 100
            Order.update(cents=raised, state=peewee.fn.lower(Order.state)).execute()  # culprit


def sell(count: int) -> None:
    begun.wait()
    with db.connection_context():
        for number in range(count):
            Order.create(state="NEW", cents=100 * number)  # culprit


if os.path.exists("shop.db"):
    os.remove("shop.db")
with db.connection_context():
    db.create_tables([Order])
    with db.atomic():
        rows = ((("OPEN", "PAID")[i % 2], i % 9000) for i in range(120_000))
        db.connection().executemany('INSERT INTO "order" (state, cents) VALUES (?, ?)', rows)
threads = [threading.Thread(target=nightly)] + [threading.Thread(target=sell, args=(4,)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
os.remove("shop.db")
