# healthy: the function has its own index, which the query uses
import hashlib
import os

import peewee

db = peewee.SqliteDatabase("subs.db")


class Subscriber(peewee.Model):
    email = peewee.CharField(index=True)
    lists = peewee.TextField()

    class Meta:
        database = db


Subscriber.add_index(peewee.SQL("CREATE INDEX subscriber_lower ON subscriber (lower(email))"))


def find(email):
    lowered = peewee.fn.LOWER(Subscriber.email)
    return Subscriber.select().where(lowered == email.lower()).get()


def preferences(email):
    person = find(email)
    names = sorted(person.lists.split(","), key=lambda name: (len(name), name[::-1]))
    text = " ".join(f"{place}:{name.title()}" for place, name in enumerate(names))
    return hashlib.pbkdf2_hmac("sha256", text.encode(), b"subs", 40_000).hex()


if os.path.exists("subs.db"):
    os.remove("subs.db")
db.create_tables([Subscriber])
lists = ",".join(f"list{n * 7 % 400}" for n in range(400))
with db.atomic():
    db.connection().executemany(
        "INSERT INTO subscriber (email, lists) VALUES (?, ?)",
        ((f"User{n}@Example.org", lists) for n in range(3000)),
    )
with db.connection_context() if db.is_closed() else db.atomic():
    texts = [preferences(f"user{n}@example.ORG") for n in range(0, 3000, 200)]
assert len(texts) == 15
db.close()
