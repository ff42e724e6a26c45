# category: index_defeated
# fix: column itself|NOCASE|lower|upper
import os

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "login.db"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.db import connection, models, transaction  # noqa: E402


class Account(models.Model):
    nick = models.CharField(max_length=40, unique=True)
    karma = models.IntegerField(default=0)

    class Meta:
        app_label = "forum"


class CaseInsensitiveBackend:
    def authenticate(self, nick):
        try:
            account = Account.objects.get(nick__iexact=nick)  # culprit
        except Account.DoesNotExist:
            return None
        return account if account.karma >= 0 else None


if os.path.exists("login.db"):
    os.remove("login.db")
with connection.schema_editor() as editor:
    editor.create_model(Account)
with transaction.atomic(), connection.cursor() as cursor:
    cursor.executemany(
        "INSERT INTO forum_account (nick, karma) VALUES (%s, 1)",
        [(f"Visitor{n:05d}",) for n in range(25_000)],
    )
backend = CaseInsensitiveBackend()
assert all(backend.authenticate(f"visitor{n:05d}") for n in range(0, 25_000, 200))
