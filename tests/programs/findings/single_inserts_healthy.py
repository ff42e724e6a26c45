import peewee

db = peewee.SqliteDatabase(":memory:")


class Event(peewee.Model):
    kind = peewee.TextField()
    at = peewee.IntegerField()

    class Meta:
        database = db


db.create_tables([Event])
with db.atomic():
    for start in range(0, 3000, 1000):
        rows = [{"kind": "click", "at": start + number} for number in range(1000)]
        Event.insert_many(rows).execute()
