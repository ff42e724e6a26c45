"""The rows of each parent: by a query for each of them, and by a join. How many they are: FAN_OUT;
and by an IN, with the way "in".
"""

import os
import sqlite3
import sys
import time

PARENTS, ROUNDS = 100, 20
FAN_OUT = int(os.environ.get("FAN_OUT", "100"))

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
db.execute("CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER, name TEXT)")
db.execute("CREATE INDEX child_parent ON child (parent)")
db.executemany("INSERT INTO parent VALUES (?)", [(number,) for number in range(PARENTS)])
children = [(number % PARENTS,) for number in range(PARENTS * FAN_OUT)]
db.executemany("INSERT INTO child (parent, name) VALUES (?, 'name')", children)


def load() -> list[object]:
    if sys.argv[1] == "after":
        return db.execute(
            "SELECT child.parent, name FROM parent JOIN child ON child.parent = parent.id"
        ).fetchall()
    ids = db.execute("SELECT id FROM parent").fetchall()
    if sys.argv[1] == "in":
        some = ", ".join("?" * PARENTS)
        sql = f"SELECT parent, name FROM child WHERE parent IN ({some})"
        return db.execute(sql, [number for (number,) in ids]).fetchall()
    return [
        db.execute("SELECT name FROM child WHERE parent = ?", (number,)).fetchall()
        for (number,) in ids
    ]


start_ns = time.perf_counter_ns()
for _ in range(ROUNDS):
    load()
print(time.perf_counter_ns() - start_ns)
