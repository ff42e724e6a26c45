# category: long_transaction
# fix: before BEGIN|after COMMIT|other work|on_commit
import threading
import time
from pathlib import Path

import django
from django.conf import settings

Path("tickets.db").unlink(missing_ok=True)
options = {"timeout": 30, "transaction_mode": "IMMEDIATE"}
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "tickets.db", "OPTIONS": options}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
)
django.setup()
from django.db import connection, models, transaction


class Ticket(models.Model):
    seat = models.IntegerField()
    sent = models.BooleanField(default=False)

    class Meta:
        app_label = "box"


def mail(ticket: Ticket) -> None:
    time.sleep(0.1)  # the mail server's answer


@transaction.atomic
def sell(seat: int) -> None:
    ticket = Ticket.objects.create(seat=seat)  # culprit
    mail(ticket)  # culprit
    ticket.sent = True
    ticket.save(update_fields=["sent"])


def cashier(seats: range) -> None:
    for seat in seats:
        sell(seat)  # culprit
    connection.close()


with connection.schema_editor() as editor:
    editor.create_model(Ticket)
cashiers = [threading.Thread(target=cashier, args=(range(n * 3, n * 3 + 3),)) for n in range(3)]
for thread in cashiers:
    thread.start()
for thread in cashiers:
    thread.join()
assert Ticket.objects.filter(sent=True).count() == 9
connection.close()
Path("tickets.db").unlink()
