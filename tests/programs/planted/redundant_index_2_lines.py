# category: redundant_index
# fix: Drop \w*cart_id_\w+|db_index
import os

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "cart.db"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.db import connection, models, transaction  # noqa: E402


class Cart(models.Model):
    class Meta:
        app_label = "market"


class CartLine(models.Model):
    cart = models.ForeignKey(Cart, models.CASCADE)  # has an index of its own
    product = models.CharField(max_length=30)

    class Meta:
        app_label = "market"
        constraints = [models.UniqueConstraint(fields=["cart", "product"], name="one_line")]


def merge_carts(pairs):
    lines = [CartLine(cart_id=cart, product=product) for cart, product in pairs]
    with transaction.atomic():
        return len(CartLine.objects.bulk_create(lines, batch_size=400))  # culprit


def products(cart):
    return sorted(CartLine.objects.filter(cart=cart).values_list("product", flat=True))


if os.path.exists("cart.db"):
    os.remove("cart.db")
with connection.schema_editor() as editor:
    editor.create_model(Cart)
    editor.create_model(CartLine)
Cart.objects.bulk_create([Cart() for _ in range(5000)])
merge_carts((1 + n * 7919 % 5000, f"p{n // 5000}") for n in range(20_000))
assert products(17)
