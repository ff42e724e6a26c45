# category: bad_index_choice|narrow_index
# fix: ANALYZE|optimize|\("?state"?, "?starts"?
import os

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "hotel.db"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.db import connection, models, transaction  # noqa: E402


class Booking(models.Model):
    state = models.CharField(max_length=10, db_index=True)
    starts = models.IntegerField(db_index=True)
    guest = models.CharField(max_length=20)

    class Meta:
        app_label = "hotel"


class FrontDesk:
    def arrivals(self, first, last):
        expected = Booking.objects.filter(state="confirmed", starts__gte=first, starts__lt=last)
        return [booking.guest for booking in expected]  # culprit

    def week(self, monday):
        return {day: self.arrivals(day, day + 1) for day in range(monday, monday + 7)}


if os.path.exists("hotel.db"):
    os.remove("hotel.db")
with connection.schema_editor() as editor:
    editor.create_model(Booking)
with transaction.atomic(), connection.cursor() as cursor:
    cursor.executemany(
        "INSERT INTO hotel_booking (state, starts, guest) VALUES (%s, %s, %s)",
        [("cancelled" if n % 40 == 0 else "confirmed", n * 7919 % 10_007, f"g{n}") for n in range(40_000)],
    )
desk = FrontDesk()
weeks = [desk.week(monday) for monday in range(0, 140, 7)]
assert sum(len(guests) for week in weeks for guests in week.values()) > 400
