"""Each object loads its set: prefetch_related."""

from shared.django_library import Author
from shared.timed import run


def before() -> int:
    return sum(len(author.book_set.all()) for author in Author.objects.all())


def after() -> int:
    return sum(len(author.book_set.all()) for author in Author.objects.prefetch_related("book_set"))


run(before, after)
