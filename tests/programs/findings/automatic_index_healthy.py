import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE buyer (id INTEGER PRIMARY KEY, code TEXT)")
db.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY, buyer_code TEXT, amount REAL)")
db.executemany("INSERT INTO buyer VALUES (?, ?)", [(i, f"c{i}") for i in range(300)])
db.executemany("INSERT INTO sale VALUES (?, ?, 1)", [(i, f"c{i % 300}") for i in range(10_000)])
db.execute("CREATE INDEX sale_buyer ON sale (buyer_code, amount)")
query = "SELECT buyer.id, amount FROM buyer JOIN sale ON buyer_code = code WHERE +buyer.id < 100"
assert all(db.execute(query).fetchall() for _ in range(15))
