# category: single_inserts
# fix: bulk_create
import csv
import io

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
)
django.setup()
from django.db import connection, models, transaction


class Parcel(models.Model):
    barcode = models.CharField(max_length=20)
    weight = models.FloatField()
    depot = models.CharField(max_length=10)

    class Meta:
        app_label = "post"


class Importer:
    def __init__(self, source: str) -> None:
        self.reader = csv.DictReader(io.StringIO(source))

    def parcel(self, row: dict[str, str]) -> None:
        parcel = Parcel(barcode=row["barcode"], depot=row["depot"].upper())
        parcel.weight = float(row["weight"])
        parcel.save()  # culprit

    @transaction.atomic
    def run(self) -> None:
        for row in self.reader:
            self.parcel(row)  # culprit


with connection.schema_editor() as editor:
    editor.create_model(Parcel)
lines = ["barcode,weight,depot"] + [f"b{i},{i / 10},d{i % 7}" for i in range(4000)]
Importer("\n".join(lines)).run()
