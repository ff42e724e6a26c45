# category: narrow_index
# fix: \("?(tenant"?, "?email|email"?, "?tenant)|\("?email"?\)|index on all that it compares: (tenant, email|email, tenant)
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.db import connection, models  # noqa: E402


class MemberQuerySet(models.QuerySet):
    def of(self, tenant):
        return self.filter(tenant=tenant)


class Member(models.Model):
    tenant = models.SlugField()  # slug fields have an index
    email = models.CharField(max_length=80)
    active = models.BooleanField(default=True)
    objects = MemberQuerySet.as_manager()

    class Meta:
        app_label = "saas"


def can_log_in(tenant, email):
    members = Member.objects.of(tenant)
    return members.filter(email=email, active=True).exists()  # culprit


with connection.schema_editor() as editor:
    editor.create_model(Member)
with connection.cursor() as cursor:
    cursor.executemany(
        "INSERT INTO saas_member (tenant, email, active) VALUES (%s, %s, 1)",
        [(f"tenant-{n % 2}", f"user{n}@example.com") for n in range(30_000)],
    )
allowed = 0
for k in range(160):
    allowed += can_log_in(f"tenant-{k % 2}", f"user{k + 29_000 - k * 60 % 14_000}@example.org")
assert allowed == 0
