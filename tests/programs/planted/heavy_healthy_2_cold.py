# healthy: the first query reads the file, the next ones find it in the cache: 2 ms once
import hashlib
import os

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "parks.db"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.db import connection, models, transaction  # noqa: E402


class Tree(models.Model):
    park = models.IntegerField(db_index=True)
    height = models.IntegerField()

    class Meta:
        app_label = "parks"


def tallest(park):
    return Tree.objects.filter(park=park).aggregate(top=models.Max("height"))["top"]


def plaque(park):
    return hashlib.pbkdf2_hmac("sha256", f"{park}{tallest(park)}".encode(), b"wood", 30_000).hex()


if os.path.exists("parks.db"):
    os.remove("parks.db")
with connection.schema_editor() as editor:
    editor.create_model(Tree)
with transaction.atomic(), connection.cursor() as cursor:
    cursor.executemany(
        "INSERT INTO parks_tree (park, height) VALUES (%s, %s)", [(n % 40, n % 37) for n in range(8000)]
    )
connection.close()
assert len([plaque(park) for park in range(40)]) == 40
