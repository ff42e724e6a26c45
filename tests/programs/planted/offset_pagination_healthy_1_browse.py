# healthy: visitors look at the first three pages, which OFFSET reaches at once
import sqlite3

from flask import Flask, render_template_string, request

app = Flask(__name__)
db = sqlite3.connect(":memory:", check_same_thread=False)
db.execute("CREATE TABLE photo (id INTEGER PRIMARY KEY, title TEXT, camera TEXT)")
db.executemany(
    "INSERT INTO photo (title, camera) VALUES (?, ?)",
    ((f"photo {n}", f"model {n % 12}") for n in range(20_000)),
)
PAGE = """<ul>{% for id, title, camera in photos %}
<li class="{{ loop.cycle('odd', 'even') }}"><a href="/photo/{{ id }}">{{ title|title }}</a>
<em>{{ camera|upper|replace('MODEL', 'Model') }}</em></li>{% endfor %}</ul>"""


def photos(page, size=24):
    sql = "SELECT id, title, camera FROM photo ORDER BY id DESC LIMIT ? OFFSET ?"
    return db.execute(sql, (size, (page - 1) * size)).fetchall()


@app.get("/browse")
def browse():
    return render_template_string(PAGE, photos=photos(request.args.get("page", 1, int)))


client = app.test_client()
for visitor in range(60):
    for page in range(1, 1 + visitor % 3 + 1):
        assert "photo/" in client.get(f"/browse?page={page}").text
