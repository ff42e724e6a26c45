"""Each object loads another one: a join."""

from shared.peewee_library import Author, Book
from shared.timed import run


def before() -> list[str]:
    return [book.author.name for book in Book.select()]


def after() -> list[str]:
    return [book.author.name for book in Book.select(Book, Author).join(Author)]


run(before, after)
