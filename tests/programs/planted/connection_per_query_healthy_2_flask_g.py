"""A connection for each request, as Flask's tutorial has it, for several statements."""
import os
import sqlite3

import flask

app = flask.Flask(__name__)
PAGE = "<h1>{{ title }}</h1>{% for line in lines %}<p>{{ line.text }} <i>{{ line.author }}</i>{% endfor %}"


def get_db() -> sqlite3.Connection:
    if "db" not in flask.g:
        flask.g.db = sqlite3.connect("forum.db")
        flask.g.db.row_factory = sqlite3.Row
    return flask.g.db


@app.teardown_appcontext
def close_db(error) -> None:
    db = flask.g.pop("db", None)
    if db is not None:
        db.close()


@app.get("/thread/<int:number>")
def thread(number: int) -> str:
    title = get_db().execute("SELECT title FROM thread WHERE id = ?", (number,)).fetchone()["title"]
    lines = get_db().execute("SELECT text, author FROM line WHERE thread = ? LIMIT 100", (number,)).fetchall()
    return flask.render_template_string(PAGE, title=title, lines=lines)


if os.path.exists("forum.db"):
    os.remove("forum.db")
db = sqlite3.connect("forum.db")
db.execute("CREATE TABLE thread (id INTEGER PRIMARY KEY, title TEXT)")
db.execute("CREATE TABLE line (thread INTEGER, text TEXT, author TEXT)")
db.execute("CREATE INDEX line_thread ON line (thread)")
db.executemany("INSERT INTO thread VALUES (?, ?)", ((i, f"t{i}") for i in range(100)))
db.executemany("INSERT INTO line VALUES (?, ?, ?)", ((i % 100, f"text {i}", f"a{i % 9}") for i in range(8000)))
db.commit()
db.close()
client = app.test_client()
for number in range(200):
    assert client.get(f"/thread/{number % 100}").status_code == 200
os.remove("forum.db")
