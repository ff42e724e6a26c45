# category: duplicate_query
# fix: cache|keep|once
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
)
django.setup()
from django.db import connection, models


class Currency(models.Model):
    code = models.CharField(max_length=3, unique=True)
    rate = models.FloatField()

    class Meta:
        app_label = "money"


class Invoice(models.Model):
    amount = models.FloatField()

    class Meta:
        app_label = "money"

    def in_currency(self, code: str) -> float:
        return self.amount * Currency.objects.get(code=code).rate  # culprit


def export(code: str) -> float:
    return sum(invoice.in_currency(code) for invoice in Invoice.objects.all())  # culprit


with connection.schema_editor() as editor:
    editor.create_model(Currency)
    editor.create_model(Invoice)
Currency.objects.bulk_create(Currency(code=code, rate=1 + n / 10) for n, code in enumerate(["EUR", "CHF", "NOK"]))
Invoice.objects.bulk_create(Invoice(amount=i / 3) for i in range(1500))
print(export("NOK"), export("CHF"))
