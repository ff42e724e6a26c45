import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE team (id INTEGER PRIMARY KEY, name TEXT)")
db.execute("CREATE TABLE player (id INTEGER PRIMARY KEY, team INTEGER)")
db.executemany("INSERT INTO team VALUES (?, ?)", [(i, f"t{i}") for i in range(100)])
db.executemany("INSERT INTO player VALUES (?, ?)", [(i, i % 100) for i in range(5000)])
db.execute("CREATE INDEX player_team ON player (team)")
query = "SELECT name, (SELECT 1 FROM player WHERE team = team.id LIMIT 1) FROM team"
assert all(len(db.execute(query).fetchall()) == 100 for _ in range(10))
query = "SELECT name, members FROM team JOIN (SELECT team, count(*) AS members FROM player GROUP BY team) AS m ON m.team = team.id"
assert all(len(db.execute(query).fetchall()) == 100 for _ in range(10))
