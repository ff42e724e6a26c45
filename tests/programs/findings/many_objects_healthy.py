import peewee

db = peewee.SqliteDatabase(":memory:")


class Event(peewee.Model):
    kind = peewee.TextField()
    at = peewee.IntegerField()

    class Meta:
        database = db


db.create_tables([Event])
rows = [(f"kind {number % 9}", number) for number in range(20_000)]
Event.insert_many(rows, fields=[Event.kind, Event.at]).execute()
kinds = {kind for (kind,) in Event.select(Event.kind).distinct().tuples()}
assert len(kinds) == 9
