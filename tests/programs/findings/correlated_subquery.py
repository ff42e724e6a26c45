import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE team (id INTEGER PRIMARY KEY, name TEXT)")
db.execute("CREATE TABLE player (id INTEGER PRIMARY KEY, team INTEGER)")
db.executemany("INSERT INTO team VALUES (?, ?)", [(i, f"t{i}") for i in range(100)])
db.executemany("INSERT INTO player VALUES (?, ?)", [(i, i % 100) for i in range(5000)])


def sizes() -> list[tuple[str, int]]:
    query = "SELECT name, (SELECT count(*) FROM player WHERE +team = team.id) FROM team"
    return db.execute(query).fetchall()  # culprit


assert all(len(sizes()) == 100 for _ in range(10))
