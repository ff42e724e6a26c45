# category: commit_per_write
# fix: atomic
import os

import peewee

if os.path.exists("prices.db"):
    os.remove("prices.db")
db = peewee.SqliteDatabase("prices.db")


class Product(peewee.Model):
    sku = peewee.CharField(unique=True)
    cents = peewee.IntegerField()

    class Meta:
        database = db

    def raise_by(self, percent: int) -> None:
        self.cents = self.cents * (100 + percent) // 100
        self.save(only=[Product.cents])  # culprit


def new_year(products: list[Product]) -> int:
    changed = 0
    for product in products:
        if product.cents >= 100:
            product.raise_by(4)  # culprit
            changed += 1
    return changed


db.create_tables([Product])
with db.atomic():
    Product.insert_many([{"sku": f"p{i}", "cents": 10 * i} for i in range(80)]).execute()
print(new_year(list(Product.select())))
db.close()
os.remove("prices.db")
