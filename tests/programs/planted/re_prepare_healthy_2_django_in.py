"""IN with as many placeholders as there are ids, in chunks."""
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
)
django.setup()
from django.db import connection, models


class Sample(models.Model):
    code = models.IntegerField(db_index=True)
    value = models.FloatField()

    class Meta:
        app_label = "lab"


def values(codes: list[int], size: int = 300) -> dict[int, float]:
    found: dict[int, float] = {}
    while codes:
        chunk, codes = codes[:size], codes[size:]
        found.update(Sample.objects.filter(code__in=chunk).values_list("code", "value"))
    return found


with connection.schema_editor() as editor:
    editor.create_model(Sample)
Sample.objects.bulk_create(Sample(code=i, value=i / 11) for i in range(20_000))
print(len(values([i * 7 % 20_000 for i in range(9_950)])))
