# category: heavy_query
# fix: that one execution|parameter|slowest|summary
import sqlite3


class UsageDb:
    def __init__(self):
        self.db = sqlite3.connect(":memory:")
        self.db.execute("CREATE TABLE usage (customer INTEGER, day INTEGER, bytes INTEGER, PRIMARY KEY (customer, day, bytes)) WITHOUT ROWID")

    def fill(self, customers, giant, size):
        small = ((c, d, d * 10) for c in range(customers) for d in range(20))
        self.db.executemany("INSERT INTO usage VALUES (?, ?, ?)", small)
        self.db.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
            "INSERT INTO usage SELECT ?, i / 3000, i FROM n", (size, giant),
        )


class Biller:
    tariff = 3

    def __init__(self, store):
        self.store = store

    def invoice(self, customer):
        days = self.store.db.execute(  # culprit
            "SELECT count(DISTINCT day), sum(bytes * 7 % 1000 + length(bytes)) FROM usage WHERE customer = ?",
            (customer,),
        )
        return days.fetchone()[1] * self.tariff


store = UsageDb()
store.fill(customers=400, giant=400, size=900_000)
biller = Biller(store)
invoices = {customer: biller.invoice(customer) for customer in range(401)}
assert invoices[400] > invoices[3]
