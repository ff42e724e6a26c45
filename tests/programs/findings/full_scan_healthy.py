import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE ticket (id INTEGER PRIMARY KEY, customer INTEGER, state TEXT)")
db.executemany("INSERT INTO ticket VALUES (?, ?, 'open')", [(i, i % 2000) for i in range(20_000)])
db.execute("CREATE TABLE state (name TEXT, label TEXT)")
db.executemany("INSERT INTO state VALUES (?, ?)", [(f"s{i}", f"S{i}") for i in range(50)])
for _ in range(10):  # a report must read all
    assert db.execute("SELECT state, count(*) FROM ticket GROUP BY state").fetchall()
for number in range(15):  # a table of 50 rows
    assert db.execute("SELECT label FROM state WHERE name = ?", (f"s{number}",)).fetchone()
