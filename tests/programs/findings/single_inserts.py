import peewee

db = peewee.SqliteDatabase(":memory:")


class Event(peewee.Model):
    kind = peewee.TextField()
    at = peewee.IntegerField()

    class Meta:
        database = db


db.create_tables([Event])
with db.atomic():
    for number in range(3000):
        Event.create(kind="click", at=number)  # culprit
