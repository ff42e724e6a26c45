"""django-guardian/django-guardian#614 (pull request; also #547). Checking the permissions of an
object is slow in big production databases.

Cause: the query has content_type and object_pk; there is an index on content_type alone (the
foreign key's), which matches a quarter of the table.

Line: list(...) in permissions_of().

Fix: an index on (content_type, object_pk).
"""

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "guardian.db"}},
    INSTALLED_APPS=[],
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
)
django.setup()
from django.db import connection, models, transaction
from _main import main


class ContentType(models.Model):
    model = models.TextField()

    class Meta:
        app_label = "guardian"


class Permission(models.Model):
    codename = models.TextField()

    class Meta:
        app_label = "guardian"


class Report(models.Model):
    title = models.TextField()

    class Meta:
        app_label = "guardian"


class UserObjectPermission(models.Model):
    permission = models.ForeignKey(Permission, on_delete=models.CASCADE)
    content_type = models.ForeignKey(ContentType, on_delete=models.CASCADE)
    object_pk = models.CharField(max_length=255)
    user_id = models.IntegerField(db_index=True)

    class Meta:
        app_label = "guardian"


def setup():
    with connection.schema_editor() as editor:
        for model in (ContentType, Permission, Report, UserObjectPermission):
            editor.create_model(model)
    ContentType.objects.bulk_create(ContentType(model=f"model{i}") for i in range(4))
    Permission.objects.bulk_create(Permission(codename=f"can_{i}") for i in range(8))
    Report.objects.bulk_create(Report(title=f"report {i}") for i in range(400))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO guardian_userobjectpermission (permission_id, content_type_id, object_pk, user_id) VALUES (%s, %s, %s, %s)",
            ((i % 8 + 1, i % 4 + 1, str(i * 31 % 20_011), i % 700) for i in range(80_000)),
        )


def permissions_of(content_type, pk):
    return list(
        UserObjectPermission.objects.filter(
            content_type=content_type, object_pk=str(pk)
        ).values_list("user_id", "permission__codename")
    )


def bad():
    content_type = ContentType.objects.get(model="model2")
    return sum(
        len(permissions_of(content_type, report.pk))
        for report in Report.objects.order_by("title")[:100]
    )


def fixed():
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE INDEX IF NOT EXISTS guardian_type_pk ON guardian_userobjectpermission (content_type_id, object_pk)"
        )
    return bad()


main(setup, bad, fixed)
