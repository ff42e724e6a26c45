"""Rows are inserted one by one: insert_many."""

from shared.peewee_library import Author, db
from shared.timed import run


def before() -> None:
    with db.atomic():
        for number in range(400):
            Author.create(name=f"new {number}")


def after() -> None:
    with db.atomic():
        Author.insert_many([{"name": f"new {number}"} for number in range(400)]).execute()


run(before, after)
