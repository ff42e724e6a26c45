"""A shop with Flask over SQLite, which a test drives under gunicorn."""

import os
import sqlite3

from flask import Flask, abort, g

import queryprof

app = Flask(__name__)
app.wsgi_app = queryprof.WsgiMiddleware(app.wsgi_app, server_timing=True)


def database() -> sqlite3.Connection:
    if "database" not in g:
        g.database = sqlite3.connect(os.environ["SHOP"])
    return g.database


@app.teardown_appcontext
def close(_error: BaseException | None) -> None:
    if "database" in g:
        g.database.close()


@app.get("/customers/<int:number>")
def customer(number: int) -> dict[str, object]:
    row = database().execute("SELECT name FROM customer WHERE id = ?", (number,)).fetchone()
    if row is None:
        abort(404)
    return {"name": row[0]}


@app.get("/orders")
def orders() -> list[object]:
    found = []
    for number, customer_number in database().execute("SELECT id, customer FROM purchase"):
        name = database().execute("SELECT name FROM customer WHERE id = ?", (customer_number,))
        found.append([number, name.fetchone()[0]])
    return found


@app.get("/stream")
def stream() -> object:
    connection = sqlite3.connect(os.environ["SHOP"])

    def lines() -> object:
        for (number,) in connection.execute("SELECT id FROM purchase ORDER BY id"):
            yield f"{number}\n"
        connection.close()

    return app.response_class(lines(), mimetype="text/plain")


@app.get("/broken")
def broken() -> str:
    database().execute("SELECT * FROM nowhere")
    return ""
