"""Flagsmith/flagsmith#6876, pull request 6877. Moving identities to another store ends with
"statement timeout" in big projects: pages are read by OFFSET.

Cause: Django's Paginator over the ordered identities: each page is LIMIT n OFFSET m, and the server
reads and drops m rows first; it grows with each page.

Line: the loop over paginator.page(...).object_list in chunks().

Fix: keyset pagination (filter(pk__gt=last).order_by("pk")[:n]). The filter and the order have an
index.
"""

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "flagsmith.db"}},
    INSTALLED_APPS=[],
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
)
django.setup()
from django.core.paginator import Paginator
from django.db import connection, models, transaction
from _main import main

PAGE = 250


class Project(models.Model):
    name = models.TextField()

    class Meta:
        app_label = "environments"


class Environment(models.Model):
    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    api_key = models.TextField(unique=True)

    class Meta:
        app_label = "environments"


class Identity(models.Model):
    identifier = models.TextField()
    environment = models.ForeignKey(Environment, on_delete=models.CASCADE)
    created = models.IntegerField()

    class Meta:
        app_label = "environments"


def setup():
    with connection.schema_editor() as editor:
        for model in (Project, Environment, Identity):
            editor.create_model(model)
    Project.objects.bulk_create(Project(name=f"project {i}") for i in range(3))
    Environment.objects.bulk_create(
        Environment(project_id=i % 3 + 1, api_key=f"key{i}") for i in range(6)
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO environments_identity (identifier, environment_id, created) VALUES (%s, %s, %s)",
            [(f"user-{i}", 6 if i % 8 == 0 else 2, i) for i in range(100_000)],
        )


def identities(project):
    return Identity.objects.filter(environment=project).order_by("pk")


def chunks(project):
    paginator = Paginator(identities(project).values_list("pk", "identifier", "created"), PAGE)
    for number in paginator.page_range:
        yield list(paginator.page(number).object_list)


def chunks_by_key(project):
    last = 0
    while found := list(
        identities(project).filter(pk__gt=last).values_list("pk", "identifier", "created")[:PAGE]
    ):
        yield found
        last = found[-1][0]


def migrate(chunks):
    written = bytes_written = 0
    for chunk in chunks(2):
        written += len(chunk)
        bytes_written += sum(len(identifier) for _, identifier, _ in chunk)
    return written, bytes_written


main(setup, lambda: migrate(chunks), lambda: migrate(chunks_by_key))
