# category: pinned_wal
# fix: fetchall|all rows at once|list\(|close the cursor
import os
import threading
import time

import peewee

if os.path.exists("mailer.db"):
    os.remove("mailer.db")
db = peewee.SqliteDatabase("mailer.db", pragmas={"journal_mode": "wal"}, timeout=10)


class Address(peewee.Model):
    email = peewee.TextField()

    class Meta:
        database = db


class Bounce(peewee.Model):
    report = peewee.TextField()

    class Meta:
        database = db


def send_all(sent):
    for address in Address.select().iterator():  # culprit
        time.sleep(0.02)  # the mail server
        sent.append(address.email)
    db.close()


def receive(finished):
    while not finished.wait(0.03):
        with db.atomic():
            Bounce.insert_many([{"report": "z" * 3000} for _ in range(150)]).execute()
    db.close()


db.create_tables([Address, Bounce])
with db.atomic():
    Address.insert_many([{"email": f"a{n}@example.org"} for n in range(60)]).execute()
sent, finished = [], threading.Event()
receiver = threading.Thread(target=receive, args=(finished,))
receiver.start()
send_all(sent)
finished.set()
receiver.join()
assert len(sent) == 60
