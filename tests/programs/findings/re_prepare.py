import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, price REAL)")
db.executemany("INSERT INTO item VALUES (?, ?, 1)", [(i, f"i{i}") for i in range(5000)])


def name(item: int) -> str:
    row = db.execute(f"SELECT name, price FROM item WHERE id = {item}").fetchone()  # culprit
    return str(row[0])


assert [name(number) for number in range(5000)]
