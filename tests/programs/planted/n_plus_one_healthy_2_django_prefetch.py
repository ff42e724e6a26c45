"""A field accessed in a loop, after a prefetch."""
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
)
django.setup()
from django.db import connection, models


class Route(models.Model):
    name = models.CharField(max_length=50)

    class Meta:
        app_label = "bus"


class Stop(models.Model):
    route = models.ForeignKey(Route, models.CASCADE, related_name="stops")
    minutes = models.IntegerField()

    class Meta:
        app_label = "bus"


def timetable(route: Route) -> str:
    return f"{route.name}: " + ", ".join(str(stop.minutes) for stop in route.stops.all())


def book() -> list[str]:
    return [timetable(route) for route in Route.objects.prefetch_related("stops")]


with connection.schema_editor() as editor:
    editor.create_model(Route)
    editor.create_model(Stop)
Route.objects.bulk_create(Route(name=f"r{i}") for i in range(2000))
Stop.objects.bulk_create(Stop(route_id=1 + i % 2000, minutes=i % 60) for i in range(10_000))
print(len(book()))
