# category: many_cheap|n_plus_one|duplicate_query
# fix: memory|many items|IN \(|JOIN|RECURSIVE|cache|keep
import random

import peewee

db = peewee.SqliteDatabase(":memory:")


class Station(peewee.Model):
    name = peewee.CharField()
    onward = peewee.IntegerField()

    class Meta:
        database = db


def station(number: int) -> Station:
    return Station.get_by_id(number)  # culprit


def ride(begin: int, draw: random.Random, stops: int) -> str:
    here = station(begin)  # culprit
    if stops == 0:
        return here.name
    return ride(1 + (here.onward + draw.randrange(50)) % 20_000, draw, stops - 1)


db.create_tables([Station])
with db.atomic():
    rows = [(f"s{i}", i * 7919 % 20_000) for i in range(20_000)]
    for batch in peewee.chunked(rows, 400):
        Station.insert_many(batch, fields=[Station.name, Station.onward]).execute()
draw = random.Random(3)
for number in range(60):
    ride(1 + number, draw, 60)
