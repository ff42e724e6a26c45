import json
import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE chat (id INTEGER PRIMARY KEY, title TEXT, messages TEXT)")
text = json.dumps(["word " * 100] * 200)
with db:
    rows = ((number, f"chat {number}", text) for number in range(400))
    db.executemany("INSERT INTO chat VALUES (?, ?, ?)", rows)
for _ in range(10):
    chats = db.execute("SELECT id, title FROM chat").fetchall()
    assert len({title for _, title in chats}) == 400
