"""Each object loads another one: select_related."""

from shared.django_library import Book
from shared.timed import run


def before() -> list[str]:
    return [book.author.name for book in Book.objects.all()]


def after() -> list[str]:
    return [book.author.name for book in Book.objects.select_related("author")]


run(before, after)
