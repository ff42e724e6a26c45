# healthy: pages by the last key seen
import peewee

db = peewee.SqliteDatabase(":memory:")


class Invoice(peewee.Model):
    number = peewee.IntegerField(unique=True)
    cents = peewee.IntegerField()

    class Meta:
        database = db


def pages(size=1500):
    last = -1
    while True:
        page = list(Invoice.select().where(Invoice.number > last).order_by(Invoice.number).limit(size))
        if not page:
            return
        yield page
        last = page[-1].number


def checksum(page):
    total = 0
    for invoice in page:
        for digit in f"{invoice.number}{invoice.cents:09}":
            total = (total * 31 + ord(digit)) % 1_000_003
    return total


db.create_tables([Invoice])
db.connection().executemany(
    "INSERT INTO invoice (number, cents) VALUES (?, ?)", ((n * 3, n * 7919 % 99_991) for n in range(15_000))
)
assert len([checksum(page) for page in pages()]) == 10
