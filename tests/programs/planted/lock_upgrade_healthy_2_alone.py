# healthy: deferred transactions that read and then write, but nobody else writes
import hashlib
import os

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "club.db"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.db import connection, models, transaction  # noqa: E402


class Season(models.Model):
    year = models.IntegerField()
    seal = models.CharField(max_length=64, blank=True)

    class Meta:
        app_label = "club"


@transaction.atomic
def close_season(year):
    season = Season.objects.get(year=year)
    season.seal = hashlib.pbkdf2_hmac("sha256", str(year).encode(), b"club", 300_000).hex()
    season.save(update_fields=["seal"])
    return season.seal


if os.path.exists("club.db"):
    os.remove("club.db")
with connection.cursor() as cursor:
    cursor.execute("PRAGMA journal_mode = WAL")
with connection.schema_editor() as editor:
    editor.create_model(Season)
Season.objects.bulk_create(Season(year=year) for year in range(2020, 2026))
assert len({close_season(year) for year in (2023, 2024, 2025)}) == 3
connection.close()
