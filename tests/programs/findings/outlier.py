import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE visit (id INTEGER PRIMARY KEY, shop INTEGER, spent INTEGER)")
db.execute("CREATE INDEX visit_shop ON visit (shop, spent)")
rows = ((i, i % 1000 if i < 3000 else 1000, i) for i in range(800_000))  # one shop has nearly all
db.executemany("INSERT INTO visit VALUES (?, ?, ?)", rows)


def spent_at(shop: int) -> int:
    query = "SELECT total(spent) FROM visit WHERE shop = ?"
    return int(db.execute(query, (shop,)).fetchone()[0])  # culprit


assert sum(map(spent_at, range(700, 1001))) > 0
