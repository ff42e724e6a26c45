"""Rows are inserted one by one: insert_all."""

import sqlite_utils
from shared.timed import run

db = sqlite_utils.Database(memory=True)
table = db.create_table("event", {"id": int, "name": str}, pk="id")


def before() -> None:
    with db.atomic():
        for number in range(400):
            table.insert({"id": number, "name": f"event {number}"})


def after() -> None:
    table.insert_all({"id": number, "name": f"event {number}"} for number in range(400))


run(before, after)
