"""The badge in a Django project with DEBUG: its text equals that of a trace, and Django's own
statements for its query log are not counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.once

PROJECT = """
import dataclasses, json, sys, time
from pathlib import Path
from django.conf import settings
Path("books.html").write_text("<p>books</p>\\n{% for book in books %}\\n{{ book.author.name }}\\n{% endfor %}")
settings.configure(
    DEBUG=True, ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="x",
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "DIRS": ["."]}],
)
import django
django.setup()
import queryprof
from django.core.wsgi import get_wsgi_application
from django.db import connection, models
from django.shortcuts import render
from django.urls import path

class Author(models.Model):
    name = models.TextField()
    class Meta:
        app_label = "shop"

class Book(models.Model):
    author = models.ForeignKey(Author, models.CASCADE)
    class Meta:
        app_label = "shop"

def books(request):
    time.sleep(0.2)  # beside which the database of a few rows takes no time
    return render(request, "books.html", {"books": Book.objects.all()})

urlpatterns = [path("", books)]
with connection.schema_editor() as editor:
    editor.create_model(Author)
    editor.create_model(Book)
for number in range(20):
    Book.objects.create(author=Author.objects.create(name=f"author {number}"))

def get(path, query=""):
    environ = {
        "REQUEST_METHOD": "GET", "PATH_INFO": path, "QUERY_STRING": query, "SERVER_NAME": "localhost",
        "SERVER_PORT": "80", "REMOTE_ADDR": "127.0.0.1", "wsgi.url_scheme": "http",
        "wsgi.input": sys.stdin.buffer, "HTTP_ACCEPT": "text/html",
        "HTTP_SEC_FETCH_DEST": "document",
    }
    body = app(environ, lambda *_: None)
    content = b"".join(body)
    getattr(body, "close", lambda: None)()
    return content.decode()

from queryprof.web import badge_pages as pages
whole = pages._recorded_so_far  # as if none of the few executions was among the sampled ones
pages._recorded_so_far = lambda: dataclasses.replace(whole(), stack_samples=())

app = queryprof.Badge(get_wsgi_application(), on=True)
get("/")  # which opens the connection, and asks it for what it can do
assert get("/").count("author ") == 20
request = json.loads(get("/__queryprof__/requests", "first=1&since=0"))[-1]
print(json.dumps({"request": request, "card": get("/__queryprof__/request/2")}))
"""


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    pytest.importorskip("django")
    folder = tmp_path_factory.mktemp("project")
    Path(folder, "project.py").write_text(PROJECT)
    done = subprocess.run(
        [sys.executable, "project.py"], cwd=folder, capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


@pytest.mark.slow
def test_django_s_own_statements_are_not_counted(shown: dict[str, Any]) -> None:
    """With DEBUG, each statement with values is executed once more. Three statements belong to a
    new connection.
    """
    assert shown["request"]["queries"] == 21 + 3
    assert "QUOTE" not in shown["card"]


def test_the_list_has_the_relation_and_the_template(shown: dict[str, Any]) -> None:
    (loop,) = shown["request"]["repeats"]
    assert loop["executions"] == 20
    assert "lazy load of Book.author in template books.html:3" in loop["place"]


def test_the_card_has_the_words_of_a_trace(shown: dict[str, Any]) -> None:
    assert '.select_related("author")' in shown["card"]


def test_no_card_of_a_loop_has_no_findings(shown: dict[str, Any]) -> None:
    assert shown["request"]["repeats"]
    assert "No findings" not in shown["card"]
    assert "What to do" in shown["card"]
    assert shown["card"].count("<b>N+1 query</b>") == 1
