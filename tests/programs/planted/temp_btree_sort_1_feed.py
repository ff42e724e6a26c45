# category: temp_btree_sort|full_scan
# fix: CREATE INDEX \w+ ON entry \(published( DESC)?\)|order of ORDER BY
import sqlite3

from flask import Flask, g, jsonify

app = Flask(__name__)
STORE = sqlite3.connect(":memory:", check_same_thread=False)


def get_db():
    if "db" not in g:
        g.db = STORE
    return g.db


def load():
    STORE.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, title TEXT, published INTEGER)")
    STORE.executemany(
        "INSERT INTO entry (title, published) VALUES (?, ?)",
        ((f"post {n}", n * 7919 % 50_021) for n in range(50_000)),
    )


def newest(count):
    rows = get_db().execute(  # culprit
        "SELECT id, title, published FROM entry ORDER BY published DESC LIMIT ?", (count,)  # culprit
    ).fetchall()  # culprit
    return [dict(zip(("id", "title", "published"), row)) for row in rows]


@app.get("/feed.json")
def feed():
    return jsonify(version="1.1", items=newest(15))


load()
client = app.test_client()
for _ in range(150):
    assert client.get("/feed.json").json["items"][0]["published"] == 50_020
