# category: offset_pagination
# fix: keyset|after it|pk__gt|iterator
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.core.paginator import Paginator  # noqa: E402
from django.db import connection, models  # noqa: E402


class Recipe(models.Model):
    name = models.CharField(max_length=60)
    steps = models.TextField()

    class Meta:
        app_label = "kitchen"
        ordering = ["id"]


class SearchIndex:
    def __init__(self):
        self.words = 0

    def add(self, names):
        self.words += sum(len(name.split()) for name in names)

    def rebuild(self, queryset, size=80):
        paginator = Paginator(queryset, size)
        for number in paginator.page_range:
            page = paginator.page(number)
            self.add(list(page.object_list))  # culprit


with connection.schema_editor() as editor:
    editor.create_model(Recipe)
with connection.cursor() as cursor:
    cursor.executemany(
        "INSERT INTO kitchen_recipe (name, steps) VALUES (%s, %s)",
        [(f"soup no {n}", "stir; " * 60) for n in range(36_000)],
    )
index = SearchIndex()
index.rebuild(Recipe.objects.values_list("name", flat=True))
assert index.words == 36_000 * 3
