"""dandi/dandi-archive#658 (pull request, part of #539). The list of versions is slow or crashes: "a
SQL query for every single Version on the page due to the asset_count property".

Cause: the template shows version.asset_count for each row; the property counts the related assets:
a SELECT COUNT(*) with a join for each.

Line: self.assets.count() in asset_count() (called from the template of page()).

Fix: annotate(Count("assets")) in the query of page(): one query.
"""

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "dandi.db"}},
    INSTALLED_APPS=[],
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
)
django.setup()
from django.db import connection, models
from django.template import engines
from _main import main


class Asset(models.Model):
    path = models.TextField()
    size = models.IntegerField()

    class Meta:
        app_label = "dandi"


class Dandiset(models.Model):
    identifier = models.TextField()

    class Meta:
        app_label = "dandi"


class Version(models.Model):
    dandiset = models.ForeignKey(Dandiset, on_delete=models.CASCADE)
    name = models.TextField()
    assets = models.ManyToManyField(Asset)

    class Meta:
        app_label = "dandi"

    @property
    def asset_count(self):
        return self.assets.count()


TEMPLATE = "{% for v in versions %}<tr><td>{{ v.dandiset.identifier }}</td><td>{{ v.name }}</td><td>{% if counted %}{{ v.number }}{% else %}{{ v.asset_count }}{% endif %}</td></tr>\n{% endfor %}"


def setup():
    with connection.schema_editor() as editor:
        for model in (Asset, Dandiset, Version):
            editor.create_model(model)
    Dandiset.objects.bulk_create(Dandiset(identifier=f"{i:06}") for i in range(100))
    Asset.objects.bulk_create(Asset(path=f"sub-{i}.nwb", size=i) for i in range(2000))
    Version.objects.bulk_create(Version(dandiset_id=i % 100 + 1, name=f"0.{i}") for i in range(400))
    Version.assets.through.objects.bulk_create(
        Version.assets.through(version_id=i + 1, asset_id=(i * 31 + k) % 2000 + 1)
        for i in range(400)
        for k in range(40)
    )


def page(number, counted):
    versions = Version.objects.select_related("dandiset").order_by("id")
    if counted:
        versions = versions.annotate(number=models.Count("assets"))
    return (
        engines["django"]
        .from_string(TEMPLATE)
        .render({"versions": versions[number * 100 : number * 100 + 100], "counted": counted})
    )


main(
    setup,
    lambda: sum(len(page(n, False)) for n in range(4)),
    lambda: sum(len(page(n, True)) for n in range(4)),
)
