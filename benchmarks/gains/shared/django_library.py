"""Django's models of authors and books, 400 of each."""

import django
from django.conf import settings
from django.db import connection, models

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=[],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
)
django.setup()


class Author(models.Model):
    name = models.TextField()

    class Meta:
        app_label = "library"

    def __str__(self) -> str:
        return str(self.name)


class Book(models.Model):
    title = models.TextField()
    author = models.ForeignKey(Author, models.CASCADE)

    class Meta:
        app_label = "library"

    def __str__(self) -> str:
        return str(self.title)


with connection.schema_editor() as editor:
    editor.create_model(Author)
    editor.create_model(Book)
Author.objects.bulk_create(Author(name=f"author {number}") for number in range(400))
Book.objects.bulk_create(
    Book(title=f"title {number}", author_id=number + 1) for number in range(400)
)
