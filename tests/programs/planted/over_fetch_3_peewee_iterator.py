# category: over_fetch|temp_btree_sort
# fix: LIMIT|CREATE INDEX \w+ ON "?article"? \("?section"?, "?clicks"?
import itertools

import peewee

db = peewee.SqliteDatabase(":memory:")


class Article(peewee.Model):
    section = peewee.IntegerField(index=True)
    clicks = peewee.IntegerField()
    title = peewee.CharField()

    class Meta:
        database = db

    @classmethod
    def popular(cls, section: int):
        return cls.select().where(cls.section == section).order_by(cls.clicks.desc())


def front_page(section: int, count: int) -> list[str]:
    articles = Article.popular(section).iterator()  # culprit
    return [article.title for article in itertools.islice(articles, count)]  # culprit


db.create_tables([Article])
with db.atomic():
    cursor = db.connection()
    rows = ((i % 5, i * 7919 % 10_007, f"title {i}") for i in range(50_000))
    cursor.executemany("INSERT INTO article (section, clicks, title) VALUES (?, ?, ?)", rows)
for number in range(80):
    assert len(front_page(number % 5, 8)) == 8
