"""A table of 50,000 events of 50 kinds, at times in no order, with an index on the kind."""

import sqlite3
import sys

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE event (id INTEGER PRIMARY KEY, kind INTEGER, at INTEGER, text TEXT)")
rows = [(n % 50, n * 7919 % 100_003, f"text {n}") for n in range(50_000)]
db.executemany("INSERT INTO event (kind, at, text) VALUES (?, ?, ?)", rows)
db.execute("CREATE INDEX event_kind ON event (kind)")
if sys.argv[1:] == ["after"]:
    db.execute("CREATE INDEX event_kind_at ON event (kind, at)")
