# category: re_prepare
# fix: parameter
import sqlite3


class Catalogue:
    columns = "p.id, p.name, p.cents, b.name, w.place"

    def __init__(self) -> None:
        self.conn = sqlite3.connect(":memory:")
        self.conn.executescript(
            "CREATE TABLE plant (id INTEGER PRIMARY KEY, name TEXT, cents INTEGER, breeder INTEGER, ward INTEGER);"
            "CREATE TABLE breeder (id INTEGER PRIMARY KEY, name TEXT);"
            "CREATE TABLE ward (id INTEGER PRIMARY KEY, place TEXT);"
        )
        self.conn.executemany("INSERT INTO breeder VALUES (?, ?)", ((i, f"b{i}") for i in range(50)))
        self.conn.executemany("INSERT INTO ward VALUES (?, ?)", ((i, f"w{i}") for i in range(50)))
        rows = ((i, f"plant {i}", i % 900, i % 50, i % 49) for i in range(10_000))
        self.conn.executemany("INSERT INTO plant VALUES (?, ?, ?, ?, ?)", rows)

    def where(self, condition: str) -> list[tuple]:
        tables = "plant p JOIN breeder b ON b.id = p.breeder JOIN ward w ON w.id = p.ward"
        sql = f"SELECT {self.columns} FROM {tables} WHERE {condition}"
        return self.conn.execute(sql).fetchall()  # culprit

    def labels(self, number: int, ceiling: int) -> list[str]:
        return [row[1] for row in self.where(f"p.id = {number} AND p.cents <= {ceiling}")]  # culprit


catalogue = Catalogue()
found = 0
step = 0
while found < 5000:
    step += 1
    found += len(catalogue.labels(step * 7919 % 10_000, 500 + step % 400))
print(found, step)
