# category: temp_btree_sort
# fix: \("?channel_id"?, "?posted"?|order of ORDER BY
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.db import connection, models  # noqa: E402


class Channel(models.Model):
    name = models.CharField(max_length=30)

    class Meta:
        app_label = "chat"

    def backlog(self, length=25):
        newest = self.messages.order_by("-posted").values_list("author", "text")[:length]
        return [f"<{author}> {text}" for author, text in newest]  # culprit


class Message(models.Model):
    channel = models.ForeignKey(Channel, models.CASCADE, related_name="messages")
    posted = models.IntegerField()
    author = models.CharField(max_length=20)
    text = models.TextField()

    class Meta:
        app_label = "chat"


with connection.schema_editor() as editor:
    editor.create_model(Channel)
    editor.create_model(Message)
channels = Channel.objects.bulk_create(Channel(name=f"#c{n}") for n in range(3))
with connection.cursor() as cursor:
    cursor.executemany(
        "INSERT INTO chat_message (channel_id, posted, author, text) VALUES (%s, %s, %s, 'hello')",
        [(1 + n % 3, n * 7919 % 100_003, f"user{n % 50}") for n in range(30_000)],
    )
for visit in range(150):
    assert len(channels[visit % 3].backlog()) == 25
