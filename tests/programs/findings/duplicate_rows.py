import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE band (id INTEGER PRIMARY KEY, name TEXT)")
db.execute("CREATE TABLE concert (id INTEGER PRIMARY KEY, band INTEGER, seats INTEGER)")
db.execute("CREATE INDEX concert_band ON concert (band)")
db.executemany("INSERT INTO band VALUES (?, ?)", [(i, f"b{i}") for i in range(100)])
db.executemany(
    "INSERT INTO concert VALUES (?, ?, ?)", [(i, i % 100, i % 997) for i in range(20000)]
)


def on_tour(seats: int) -> list[tuple[int, str]]:
    query = (
        "SELECT DISTINCT b.id, b.name FROM band b JOIN concert c ON c.band = b.id WHERE c.seats > ?"
    )
    return db.execute(query, (seats,)).fetchall()  # culprit


assert all(len(on_tour(seats)) == 100 for seats in range(40))
