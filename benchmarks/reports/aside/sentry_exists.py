"""getsentry/sentry#20134 (pull request; the same in django-cms/django-cms#5514). An API endpoint
only needs to know whether any row exists, and counts all.

Cause: queryset.count() > 0 in has_issues(): all groups of the project are counted, their rows read
for the status.

Line: .count() in has_issues().

Fix: .exists(), which stops at the first row. No index is missing: the first row of a project nearly
always matches.
"""

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "sentry.db"}},
    INSTALLED_APPS=[],
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
)
django.setup()
from django.db import connection, models, transaction
from _main import main


class Organization(models.Model):
    slug = models.TextField(unique=True)

    class Meta:
        app_label = "sentry"


class Project(models.Model):
    organization = models.ForeignKey(Organization, on_delete=models.CASCADE)
    slug = models.TextField()

    class Meta:
        app_label = "sentry"


class Group(models.Model):
    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    status = models.IntegerField()
    level = models.IntegerField()
    message = models.TextField()

    class Meta:
        app_label = "sentry"


def setup():
    with connection.schema_editor() as editor:
        for model in (Organization, Project, Group):
            editor.create_model(model)
    Organization.objects.bulk_create(Organization(slug=f"org{i}") for i in range(10))
    Project.objects.bulk_create(
        Project(organization_id=i % 10 + 1, slug=f"project{i}") for i in range(50)
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO sentry_group (project_id, status, level, message) VALUES (%s, %s, %s, %s)",
            (
                (i % 50 + 1, i // 50 % 3, i // 50 % 5, "ValueError: " + "x" * 120)
                for i in range(100_000)
            ),
        )


def has_issues_count(project, status):
    return Group.objects.filter(project=project, status=status).count() > 0


def has_issues_exists(project, status):
    return Group.objects.filter(project=project, status=status).exists()


def overview(organization, has_issues):
    projects = Project.objects.filter(organization__slug=organization).order_by("slug")
    return [(p.slug, [has_issues(p, status) for status in (0, 1, 2)]) for p in projects]


def run(has_issues):
    return sum(sum(flags) for i in range(10) for _, flags in overview(f"org{i}", has_issues))


main(setup, lambda: run(has_issues_count), lambda: run(has_issues_exists))
