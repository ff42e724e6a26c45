import peewee

db = peewee.SqliteDatabase(":memory:")


class Tree(peewee.Model):
    species = peewee.CharField()
    height = peewee.FloatField()
    street = peewee.CharField()

    class Meta:
        database = db


def survey(count: int):
    for number in range(count):
        yield {"species": f"sp{number % 31}", "height": number % 40 / 2, "street": f"st{number % 700}"}


def load(rows) -> None:
    with db.atomic():
        for batch in peewee.chunked(rows, 250):
            Tree.insert_many(batch).execute()


db.create_tables([Tree])
load(survey(12_000))
print(Tree.select().count())
