# category: stale_statistics
# fix: ANALYZE|optimize
import os

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "alarms.db"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.db import connection, models, transaction  # noqa: E402


class Alarm(models.Model):
    level = models.SlugField()
    sensor = models.SlugField()
    acknowledged = models.BooleanField(default=False)

    class Meta:
        app_label = "plant"


class Panel:
    def __init__(self, level):
        self.open = Alarm.objects.filter(level=level)

    def lamp(self, sensor):
        return "on" if self.open.filter(sensor=sensor, acknowledged=False).count() else "off"  # culprit


def insert(rows):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO plant_alarm (level, sensor, acknowledged) VALUES (%s, %s, 0)", rows
        )


if os.path.exists("alarms.db"):
    os.remove("alarms.db")
with connection.schema_editor() as editor:
    editor.create_model(Alarm)
insert([(f"level{n}", f"s{n // 8}") for n in range(16)])
with connection.cursor() as cursor:
    cursor.execute("ANALYZE")
insert([(f"level{n % 2}", f"s{n * 31 % 4001}") for n in range(40_000)])
connection.close()
panel = Panel("level1")
lamps = {sensor: panel.lamp(f"s{sensor}") for sensor in range(0, 4000, 40)}
assert "on" in lamps.values()
connection.close()
