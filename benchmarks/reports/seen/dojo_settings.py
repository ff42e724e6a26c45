"""DefectDojo/django-DefectDojo#1953 (pull request). "lots of System_Settings.objects.get() calls
... sometimes over a 100 queries just to render one page".

Cause: the same row of settings is read again for each finding on the page, with nothing written in
between.

Line: objects.get() in settings_now() (called from sla_days() and severity_label(), loop in page()).

Fix: keep the object for the request (or in Django's cache, emptied by save()).
"""

import functools
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "dojo.db"}},
    INSTALLED_APPS=[],
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
)
django.setup()
from django.db import connection, models
from _main import main


class SystemSettings(models.Model):
    enable_sla = models.BooleanField(default=True)
    sla_high = models.IntegerField(default=30)
    sla_low = models.IntegerField(default=120)
    labels = models.TextField(default="S")
    time_zone = models.TextField(default="UTC")

    class Meta:
        app_label = "dojo"


class Product(models.Model):
    name = models.TextField()

    class Meta:
        app_label = "dojo"


class Finding(models.Model):
    product = models.ForeignKey(Product, on_delete=models.CASCADE)
    title = models.TextField()
    severity = models.TextField()
    age = models.IntegerField()

    class Meta:
        app_label = "dojo"


def setup():
    with connection.schema_editor() as editor:
        for model in (SystemSettings, Product, Finding):
            editor.create_model(model)
    SystemSettings.objects.create()
    Product.objects.bulk_create(Product(name=f"product {i}") for i in range(12))
    Finding.objects.bulk_create(
        Finding(
            product_id=i % 12 + 1,
            title=f"CVE-{i}",
            severity="High" if i % 3 else "Low",
            age=i % 200,
        )
        for i in range(6000)
    )


def settings_now():
    return SystemSettings.objects.get()


settings_kept = functools.lru_cache(settings_now)


def sla_days(finding, get):
    return (get().sla_high if finding.severity == "High" else get().sla_low) - finding.age


def severity_label(finding, get):
    return get().labels + finding.severity[0]


def page(product, get):
    findings = (
        Finding.objects.filter(product=product).select_related("product").order_by("id")[:150]
    )
    return [(f.product.name, f.title, severity_label(f, get), sla_days(f, get)) for f in findings]


def run(get):
    return sum(
        row[3] for product in Product.objects.order_by("id")[:6] for row in page(product, get)
    )


main(setup, lambda: run(settings_now), lambda: run(settings_kept))
