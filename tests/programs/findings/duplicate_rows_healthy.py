import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE band (id INTEGER PRIMARY KEY, name TEXT)")
db.execute("CREATE TABLE concert (id INTEGER PRIMARY KEY, band INTEGER, seats INTEGER)")
db.execute("CREATE INDEX concert_band ON concert (band)")
db.executemany("INSERT INTO band VALUES (?, ?)", [(i, f"b{i}") for i in range(100)])
db.executemany(
    "INSERT INTO concert VALUES (?, ?, ?)", [(i, i % 100, i % 997) for i in range(20000)]
)
query = "SELECT id, name FROM band WHERE EXISTS (SELECT 1 FROM concert WHERE band = band.id AND seats > ?)"
assert all(len(db.execute(query, (seats,)).fetchall()) == 100 for seats in range(10))
query = "SELECT DISTINCT b.id, c.id FROM band b JOIN concert c ON c.band = b.id WHERE b.id < ?"
assert all(len(db.execute(query, (number,)).fetchall()) == 200 * number for number in range(10))
