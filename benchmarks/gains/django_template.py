"""A template loads an object for each row: select_related."""

from django.template import Context, Engine
from shared.django_library import Book
from shared.timed import run

PAGE = Engine().from_string(
    "{% for book in books %}<li>{{ book.title|upper }}: {{ book.author.name }}</li>{% endfor %}"
)


def before() -> str:
    return PAGE.render(Context({"books": Book.objects.all()}))


def after() -> str:
    return PAGE.render(Context({"books": Book.objects.select_related("author")}))


run(before, after)
