# category: bad_index_choice|narrow_index
# fix: ANALYZE|optimize|\("?(archived"?, "?revised|revised"?, "?archived)
import os

import peewee

database = peewee.SqliteDatabase("docs.db")


class Document(peewee.Model):
    archived = peewee.BooleanField(index=True, default=False)
    revised = peewee.IntegerField(index=True)
    title = peewee.TextField()

    class Meta:
        database = database

    @classmethod
    def current(cls):
        return cls.select().where(cls.archived == False)  # noqa: E712

    @classmethod
    def revised_between(cls, start, end):
        return [d.title for d in cls.current().where(cls.revised.between(start, end))]  # culprit


def digest(day):
    titles = Document.revised_between(day * 3, day * 3 + 2)
    return f"day {day}: " + (", ".join(titles) or "nothing new")


if os.path.exists("docs.db"):
    os.remove("docs.db")
database.create_tables([Document])
with database.atomic():
    database.connection().executemany(
        "INSERT INTO document (archived, revised, title) VALUES (?, ?, ?)",
        ((n % 50 == 0, n * 7919 % 30_011, f"doc {n}") for n in range(30_000)),
    )
mails = [digest(day) for day in range(150)]
assert len(mails) == 150
database.close()
