# healthy: all columns of the rows are wanted, the index cannot cover a whole article
import peewee

db = peewee.SqliteDatabase(":memory:")


class Article(peewee.Model):
    section = peewee.CharField(index=True)
    headline = peewee.TextField()
    body = peewee.TextField()

    class Meta:
        database = db


class FrontPage:
    def __init__(self, sections):
        self.sections = sections

    def render(self):
        return "\n".join(self.block(name) for name in self.sections)

    def block(self, name):
        articles = Article.select().where(Article.section == name)
        return name + "".join(f"<h2>{a.headline}</h2><p>{' '.join(a.body.split())[:80]}" for a in articles)


db.create_tables([Article])
body = "lorem ipsum dolor sit amet " * 20
db.connection().executemany(
    "INSERT INTO article (section, headline, body) VALUES (?, ?, ?)",
    ((f"s{n % 8}", f"h{n}", body) for n in range(12_000)),
)
assert FrontPage([f"s{n}" for n in range(8)]).render()
