import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE visit (id INTEGER PRIMARY KEY, shop INTEGER, spent INTEGER)")
db.execute("CREATE INDEX visit_shop ON visit (shop, spent)")
rows = ((i, i % 10, i) for i in range(100_000))
db.executemany("INSERT INTO visit VALUES (?, ?, ?)", rows)


def spent_at(shop: int) -> int:
    query = "SELECT total(spent) FROM visit WHERE shop = ?"
    return int(db.execute(query, (shop,)).fetchone()[0])


assert sum(map(spent_at, range(10))) > 0
