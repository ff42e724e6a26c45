"""Rows are saved one by one: bulk_create."""

from django.db import transaction
from shared.django_library import Author
from shared.timed import run


def before() -> None:
    with transaction.atomic():
        for number in range(400):
            Author(name=f"new {number}").save()


def after() -> None:
    Author.objects.bulk_create(Author(name=f"new {number}") for number in range(400))


run(before, after)
