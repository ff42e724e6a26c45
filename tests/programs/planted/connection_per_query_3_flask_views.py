# category: connection_per_query
# fix: one connection|keep it|threading.local|request
import os
import sqlite3

import flask

app = flask.Flask(__name__)
app.config["DATABASE"] = "poll.db"


class Repository:
    @property
    def connection(self) -> sqlite3.Connection:
        return sqlite3.connect(flask.current_app.config["DATABASE"])  # culprit

    def votes(self, option: int) -> int:
        query = "SELECT votes FROM option WHERE id = ?"
        return self.connection.execute(query, (option,)).fetchone()[0]  # culprit


@app.get("/poll/<int:first>")
def poll(first: int):
    repository = Repository()
    return {str(option): repository.votes(option) for option in range(first, first + 120)}  # culprit


def create(path: str) -> None:
    if os.path.exists(path):
        os.remove(path)
    db = sqlite3.connect(path)
    for number in range(12):
        db.execute(f"CREATE TABLE poll_{number} (id INTEGER PRIMARY KEY, title TEXT, closes TEXT)")
    db.execute("CREATE TABLE option (id INTEGER PRIMARY KEY, votes INTEGER)")
    db.executemany("INSERT INTO option VALUES (?, ?)", ((i, i % 17) for i in range(2000)))
    db.commit()
    db.close()


create("poll.db")
client = app.test_client()
for first in range(0, 1800, 120):
    assert len(client.get(f"/poll/{first}").json) == 120
os.remove("poll.db")
