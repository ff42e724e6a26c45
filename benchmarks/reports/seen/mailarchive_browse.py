"""ietf-tools/mailarchive#3922 (pull request). "/arch/browse/http/?so=-frm takes 75811ms": one
list's messages, ordered by sender.

Cause: filter on email_list and order by frm: there is an index on each of the two, none on both, so
all messages of the list are read and sorted for 20 of them.

Line: the slice (list(...)) in browse().

Fix: an index on (email_list, frm).
"""

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "archive.db"}},
    INSTALLED_APPS=[],
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
)
django.setup()
from django.db import connection, models, transaction
from _main import main


class EmailList(models.Model):
    name = models.TextField(unique=True)

    class Meta:
        app_label = "archive"


class Thread(models.Model):
    date = models.IntegerField()

    class Meta:
        app_label = "archive"


class Message(models.Model):
    email_list = models.ForeignKey(EmailList, on_delete=models.CASCADE)
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE)
    frm = models.CharField(max_length=255, db_index=True)
    subject = models.TextField()
    date = models.IntegerField(db_index=True)

    class Meta:
        app_label = "archive"


def setup():
    with connection.schema_editor() as editor:
        for model in (EmailList, Thread, Message):
            editor.create_model(model)
    EmailList.objects.bulk_create(EmailList(name=f"list{i}") for i in range(5))
    Thread.objects.bulk_create(Thread(date=i) for i in range(500))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO archive_message (email_list_id, thread_id, frm, subject, date) VALUES (%s, %s, %s, %s, %s)",
            (
                (
                    i % 5 + 1,
                    i % 500 + 1,
                    f"person{i * 7919 % 9001}@example.org",
                    f"Re: draft {i % 900}",
                    i,
                )
                for i in range(60_000)
            ),
        )
        cursor.execute("ANALYZE")


def lists():
    return list(EmailList.objects.order_by("name"))


def browse(email_list, page=0):
    return list(
        Message.objects.filter(email_list=email_list)
        .order_by("-frm")
        .values_list("frm", "subject")[page * 20 : page * 20 + 20]
    )


def newest(email_list):
    return (
        Message.objects.filter(email_list=email_list)
        .order_by("-pk")
        .values_list("subject", flat=True)[0]
    )


def bad():
    return [
        (l.name, newest(l), sum(len(frm) for frm, _ in sum((browse(l, n) for n in range(9)), [])))
        for l in lists()
    ]


def fixed():
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE INDEX IF NOT EXISTS archive_list_frm ON archive_message (email_list_id, frm)"
        )
    return bad()


main(setup, bad, fixed)
