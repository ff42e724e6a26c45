# category: missing_covering_index
# fix: \("?voted"?, "?age"?
"""A third of the rows is added up: too many to look up one by one."""

import sqlite3


def mean_age(db, voted):
    query = "SELECT avg(age) FROM voter WHERE voted = ?"
    return db.execute(query, (voted,)).fetchone()[0]  # culprit


def main():
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE voter (id INTEGER PRIMARY KEY, name TEXT, street TEXT, age INTEGER, voted INTEGER)")
    db.executemany(
        "INSERT INTO voter VALUES (?, ?, ?, ?, ?)",
        ((n, f"name {n}", f"street {n % 400}", 18 + n % 70, n * 7919 % 3) for n in range(60_000)),
    )
    for number in range(60):
        db.execute("UPDATE voter SET age = age + 1 WHERE id = ?", (number,))
        assert mean_age(db, number % 3) > 18


main()
