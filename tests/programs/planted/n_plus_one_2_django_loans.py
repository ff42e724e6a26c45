# category: n_plus_one
# fix: select_related
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
)
django.setup()
from django.db import connection, models


class Member(models.Model):
    name = models.CharField(max_length=50)

    class Meta:
        app_label = "library"


class Loan(models.Model):
    member = models.ForeignKey(Member, models.CASCADE)
    title = models.CharField(max_length=50)

    class Meta:
        app_label = "library"


def reminder(loan: Loan) -> str:
    return f"Dear {loan.member.name}, please bring back {loan.title}."  # culprit


def reminders() -> list[str]:
    return [reminder(loan) for loan in Loan.objects.order_by("title")]  # culprit


with connection.schema_editor() as editor:
    editor.create_model(Member)
    editor.create_model(Loan)
Member.objects.bulk_create(Member(name=f"m{i}") for i in range(1500))
Loan.objects.bulk_create(Loan(member_id=1 + i, title=f"t{i}") for i in range(1500))
print(len(reminders()))
