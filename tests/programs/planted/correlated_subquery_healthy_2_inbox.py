# healthy: Exists() over an indexed foreign key, for a page of 40 threads
import hashlib

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.db import connection, models  # noqa: E402
from django.db.models import Exists, OuterRef  # noqa: E402


class Thread(models.Model):
    subject = models.CharField(max_length=60)

    class Meta:
        app_label = "mail"


class Attachment(models.Model):
    thread = models.ForeignKey(Thread, models.CASCADE)
    name = models.CharField(max_length=60)

    class Meta:
        app_label = "mail"


def inbox(start):
    clip = Exists(Attachment.objects.filter(thread=OuterRef("pk")))
    threads = Thread.objects.filter(pk__range=(start, start + 39)).annotate(clip=clip)
    lines = "\n".join("".join(("@ " if t.clip else "  ", t.subject.title())) for t in threads)
    return lines, hashlib.pbkdf2_hmac("sha256", lines.encode(), b"etag", 60_000).hex()


with connection.schema_editor() as editor:
    editor.create_model(Thread)
    editor.create_model(Attachment)
Thread.objects.bulk_create(Thread(subject=f"about {n}") for n in range(2000))
with connection.cursor() as cursor:
    cursor.executemany(
        "INSERT INTO mail_attachment (thread_id, name) VALUES (%s, 'a.pdf')",
        [(1 + n * 3 % 2000,) for n in range(5000)],
    )
visited = (1, 41, 81, 401, 1201, 1, 41)
assert len({inbox(start)[1] for start in visited}) == 5
