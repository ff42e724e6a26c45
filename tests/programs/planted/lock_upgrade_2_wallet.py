# category: lock_upgrade
# fix: IMMEDIATE
import os
import threading

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "wallet.db", "OPTIONS": {"timeout": 2}}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.db import OperationalError, connection, models, transaction  # noqa: E402


class Wallet(models.Model):
    owner = models.CharField(max_length=20)
    cents = models.IntegerField()

    class Meta:
        app_label = "bank"


has_read, has_paid = threading.Semaphore(0), threading.Semaphore(0)
lost = []


def withdraw(pk, cents):
    with transaction.atomic():
        wallet = Wallet.objects.get(pk=pk)
        has_read.release()
        has_paid.acquire()
        wallet.cents -= cents
        wallet.save()  # culprit


def cash_machine():
    for pk in range(1, 31):
        try:
            withdraw(pk, 20)
        except OperationalError as error:
            lost.append(str(error))
    connection.close()


def payroll():
    for pk in range(1, 31):
        has_read.acquire()
        Wallet.objects.filter(pk=pk).update(cents=models.F("cents") + 3000)
        has_paid.release()
    connection.close()


if os.path.exists("wallet.db"):
    os.remove("wallet.db")
with connection.cursor() as cursor:
    cursor.execute("PRAGMA journal_mode = WAL")
with connection.schema_editor() as editor:
    editor.create_model(Wallet)
Wallet.objects.bulk_create(Wallet(owner=f"o{n}", cents=100) for n in range(30))
threads = [threading.Thread(target=work) for work in (cash_machine, payroll)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(lost) == 30, lost
