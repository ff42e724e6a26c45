# category: correlated_subquery
# fix: GROUP BY|\("?slug"?|index on what it compares
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.db import connection, models  # noqa: E402
from django.db.models import OuterRef, Subquery  # noqa: E402


class Song(models.Model):
    slug = models.CharField(max_length=40)
    title = models.CharField(max_length=80)

    class Meta:
        app_label = "radio"


class Play(models.Model):
    slug = models.CharField(max_length=40)
    at = models.IntegerField()

    class Meta:
        app_label = "radio"


def chart_page(start, stop):
    latest = Play.objects.filter(slug=OuterRef("slug")).order_by("-at").values("at")[:1]
    page = Song.objects.filter(id__gte=start, id__lt=stop).annotate(last=Subquery(latest))
    return [(song.title, song.last) for song in page]  # culprit


def load(songs, plays):
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO radio_song (slug, title) VALUES (%s, %s)", songs)
        cursor.executemany("INSERT INTO radio_play (slug, at) VALUES (%s, %s)", plays)


with connection.schema_editor() as editor:
    editor.create_model(Song)
    editor.create_model(Play)
load([(f"song-{n}", f"Song {n}") for n in range(300)], [(f"song-{n % 300}", n) for n in range(30_000)])
charts = [row for start in range(1, 301, 50) for row in chart_page(start, start + 50)]
assert len(charts) == 300 and all(last for _, last in charts)
