"""A Django project with a view and its tests. If SLOW is set, the view's query is in a loop."""

FILES = {
    "manage.py": """
import os, sys

def main():
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_settings")
    from django.core.management import execute_from_command_line
    execute_from_command_line(sys.argv)

if __name__ == "__main__":
    main()
""",
    "site_settings.py": """
SECRET_KEY = "x"
INSTALLED_APPS = ["shop"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}}
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = True
ROOT_URLCONF = "shop.urls"
""",
    "pytest.ini": """
[pytest]
DJANGO_SETTINGS_MODULE = site_settings
python_files = tests.py
pythonpath = .
""",
    "shop/__init__.py": "",
    "shop/models.py": """
from django.db import models

class Author(models.Model):
    name = models.CharField(max_length=50)

class Book(models.Model):
    title = models.CharField(max_length=50)
    author = models.ForeignKey(Author, on_delete=models.CASCADE)
""",
    "shop/urls.py": """
import os
from django.http import HttpResponse
from django.urls import path
from shop.models import Book

def books(request):
    found = Book.objects.all() if os.environ.get("SLOW") else Book.objects.select_related("author")
    return HttpResponse(",".join(book.author.name for book in found))

urlpatterns = [path("books/", books)]
""",
    "shop/tests.py": """
import os
from django.test import TestCase, TransactionTestCase
import queryprof
from shop.models import Author, Book

class Books(TestCase):
    @classmethod
    def setUpTestData(cls):
        for number in range(20):
            Book.objects.create(title="x", author=Author.objects.create(name=f"a{number}"))

    def setUp(self):
        Book.objects.count()

    def test_list(self):
        self.assertEqual(self.client.get("/books/").status_code, 200)

class Limited(queryprof.TestCase, Books):
    def test_list(self):
        limits = {"queries": 1, "plans": "no full scan of shop_author"}
        with self.assertAtMost(**({"queries": 100} if os.environ.get("FREE") else limits)):
            super().test_list()

class Flushed(TransactionTestCase):
    def test_one(self):
        self.addCleanup(Author.objects.all().delete)  # which unittest calls, and no test
        Author.objects.create(name="x")
        self.assertEqual(Author.objects.count(), 1)

class Failing(TestCase):
    def test_own(self):
        Author.objects.count()
        if os.environ.get("BREAK"):
            self.fail("its own reason")
""",
}
