# healthy: the subquery runs for 30 rows and finds its answer in an index at once
import hashlib
import sqlite3

db = sqlite3.connect(":memory:")
db.executescript(
    """CREATE TABLE garden (id INTEGER PRIMARY KEY, owner TEXT);
    CREATE TABLE watering (id INTEGER PRIMARY KEY, garden INTEGER, day INTEGER);
    CREATE INDEX watering_garden_day ON watering (garden, day);"""
)
db.executemany("INSERT INTO garden VALUES (?, ?)", ((n, f"o{n}") for n in range(3000)))
db.executemany(
    "INSERT INTO watering (garden, day) VALUES (?, ?)", ((n % 3000, n // 300) for n in range(30_000))
)


def page(number, size=30):
    return db.execute(
        """SELECT owner, (SELECT max(day) FROM watering WHERE garden = garden.id) FROM garden
        WHERE id BETWEEN ? AND ?""".replace("WHERE garden =", "WHERE watering.garden ="),
        (number * size, number * size + size - 1),
    ).fetchall()


def postcard(owner, day):
    return hashlib.pbkdf2_hmac("sha256", f"{owner} {day}".encode(), b"garden", 900).hex()


cards = [postcard(*row) for number in range(0, 100, 4) for row in page(number)]
assert len(cards) == 750
