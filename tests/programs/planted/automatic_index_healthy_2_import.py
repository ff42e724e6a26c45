# healthy: a nightly import joins two fresh temporary tables once; CREATE INDEX would cost the same
import peewee

db = peewee.SqliteDatabase(":memory:")


class Price(peewee.Model):
    sku = peewee.CharField()
    cents = peewee.IntegerField()

    class Meta:
        database = db
        temporary = True


class Delivery(peewee.Model):
    sku = peewee.CharField()
    pieces = peewee.IntegerField()

    class Meta:
        database = db
        temporary = True


def valued():
    return (
        Delivery.select(Delivery.sku, Delivery.pieces, Price.cents)
        .join(Price, on=(Price.sku == Delivery.sku)).tuples()
    )


def invoice_lines():
    for sku, pieces, cents in valued():
        net = pieces * cents
        tax = round(net * 0.19)
        yield f"{sku:<10}{pieces:>5}{net / 100:>12.2f}{tax / 100:>10.2f}{(net + tax) / 100:>12.2f}"


db.create_tables([Price, Delivery])
with db.atomic():
    raw = db.connection()
    raw.executemany("INSERT INTO price (sku, cents) VALUES (?, ?)", ((f"s{n}", n % 5000) for n in range(30_000)))
    raw.executemany("INSERT INTO delivery (sku, pieces) VALUES (?, ?)", ((f"s{n * 7 % 30_000}", n % 40) for n in range(30_000)))
assert sum(1 for _ in invoice_lines()) == 30_000
