# category: full_scan
# fix: CREATE INDEX \w+ ON "?\w*shipment"? \("?tracking"?|db_index|index on what it compares: tracking
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=[], DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.db import connection, models  # noqa: E402


class Shipment(models.Model):
    tracking = models.CharField(max_length=30)
    weight = models.IntegerField()
    status = models.CharField(max_length=12, default="in_transit")

    class Meta:
        app_label = "logistics"


class CarrierWebhook:
    """Takes the carrier's scan events and answers with what we know of the parcel."""

    def __init__(self):
        self.unknown = 0

    def handle(self, event):
        parcel = self._parcel(event["barcode"])
        if parcel is None:
            self.unknown += 1
            return {"ok": False}
        return {"ok": True, "weight": parcel.weight, "status": parcel.status}

    def _parcel(self, barcode):
        try:
            return Shipment.objects.get(tracking=barcode)  # culprit
        except Shipment.DoesNotExist:
            return None


with connection.schema_editor() as editor:
    editor.create_model(Shipment)
with connection.cursor() as cursor:
    cursor.executemany(
        "INSERT INTO logistics_shipment (tracking, weight, status) VALUES (%s, %s, 'in_transit')",
        [(f"JJD{n * 7919 % 1000003:09d}", n % 900) for n in range(40_000)],
    )
hook = CarrierWebhook()
for k in range(250):
    hook.handle({"barcode": f"JJD{k * 131 * 7919 % 1000003:09d}"})
assert hook.unknown == 0
