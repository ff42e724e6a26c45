"""The migration for an index: Django and Alembic create the same index from it."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from conftest import Run
from queryprof.findings.migrations import migration_of

pytestmark = pytest.mark.once

TWO = "CREATE INDEX shop_ticket_state_idx ON shop_ticket (state, made DESC);"
LOWER = "CREATE INDEX shop_ticket_lower_idx ON shop_ticket (lower(state));"
PARTIAL = "CREATE INDEX some ON shop_ticket (state) WHERE made > 5;"
COLON = "CREATE INDEX some ON shop_ticket (state || ':made');"
QUOTED = 'CREATE INDEX "a ""b"" c" ON "odd ""table""" ("group", "x y" DESC);'

DJANGO = """
import sys, json
from django.conf import settings
settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1]}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
import django
django.setup()
from django.db import connection, migrations, models

class Ticket(models.Model):
    state = models.TextField()
    made = models.IntegerField()
    class Meta:
        app_label, db_table = "shop", "shop_ticket"

def fill():
    with connection.schema_editor() as editor:
        editor.create_model(Ticket)
    Ticket.objects.bulk_create(Ticket(state=f"s{n}", made=n) for n in range(20_000))

def find_tickets():
    return [Ticket.objects.filter(state=f"s{n}").count() for n in range(0, 20_000, 200)]

if sys.argv[2] == "fill":
    fill()
elif sys.argv[2] == "find":
    assert sum(find_tickets()) == 100
elif sys.argv[2] == "index":
    index = eval(sys.argv[3])
    index.set_name_with_model(Ticket)
    with connection.schema_editor() as editor:
        editor.add_index(Ticket, index)
else:
    from django.db.migrations.state import ProjectState
    operation = eval(sys.argv[3])
    with connection.schema_editor() as editor:
        operation.database_forwards("shop", editor, ProjectState(), ProjectState())
"""


def index_in(database: Path) -> list[tuple[object, ...]]:
    """Return the columns of the only named index in the file."""
    with closing(sqlite3.connect(database)) as db:
        named = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
        ((name,),) = db.execute(named)
        found = "SELECT name, desc FROM pragma_index_xinfo(?) WHERE key"
        return db.execute(found, (name,)).fetchall()


@pytest.mark.slow
def test_django_makes_the_index_of_a_recorded_project(tmp_path: Path, queryprof: Run) -> None:
    """The finding proposes models.Index(...). After the project adds it, the finding is gone."""
    pytest.importorskip("django")
    (tmp_path / "project.py").write_text(DJANGO)
    run = [sys.executable, "project.py", "shop.db"]
    subprocess.run([*run, "fill"], cwd=tmp_path, check=True)
    record = ["run", "-o", "a.qprof", "project.py", "shop.db", "find"]
    queryprof(*record, cwd=tmp_path)
    shown = queryprof("analyze", "a.qprof", cwd=tmp_path, env={"COLUMNS": "200"}).stdout
    (index,) = re.findall(r"Django: (models\.Index\(.*?\]\))", shown)
    assert index == 'models.Index(fields=["state"])'
    subprocess.run([*run, "index", index], cwd=tmp_path, check=True)
    assert index_in(tmp_path / "shop.db") == [("state", 0)]
    queryprof(*record, cwd=tmp_path)
    assert "Django:" not in queryprof("analyze", "a.qprof", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("code", "how", "made"),
    [
        (TWO, "index", [("state", 0), ("made", 1)]),
        (LOWER, "operation", [(None, 0)]),
        (PARTIAL, "operation", [("state", 0)]),
    ],
)
@pytest.mark.repeats
def test_django_executes_what_is_written(
    code: str, how: str, made: list[tuple[object, ...]], tmp_path: Path
) -> None:
    pytest.importorskip("django")
    (tmp_path / "project.py").write_text(DJANGO)
    run = [sys.executable, "project.py", "shop.db"]
    subprocess.run([*run, "fill"], cwd=tmp_path, check=True)
    line = migration_of("django", code).removeprefix("Django: ")
    subprocess.run([*run, how, line.partition(" in Meta")[0]], cwd=tmp_path, check=True)
    assert index_in(tmp_path / "shop.db") == made


@pytest.mark.parametrize(
    ("code", "table", "made"),
    [
        (TWO, "shop_ticket (state, made)", [("state", 0), ("made", 1)]),
        (LOWER, "shop_ticket (state, made)", [(None, 0)]),
        (PARTIAL, "shop_ticket (state, made)", [("state", 0)]),
        (COLON, "shop_ticket (state, made)", [(None, 0)]),
        (QUOTED, '"odd ""table""" ("group", "x y")', [("group", 0), ("x y", 1)]),
    ],
)
@pytest.mark.repeats
def test_alembic_executes_what_is_written(
    code: str, table: str, made: list[tuple[object, ...]], tmp_path: Path
) -> None:
    sa = pytest.importorskip("sqlalchemy")
    pytest.importorskip("alembic")
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    engine = sa.create_engine(f"sqlite:///{tmp_path / 'shop.db'}")
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE TABLE {table}")
        op = Operations(MigrationContext.configure(connection))
        line, *model = migration_of("sqlalchemy", code).splitlines()
        eval(line.removeprefix("Alembic: "), {"op": op, "sa": sa})
    assert [one.partition(" of the model")[0] for one in model] == (
        ["and in __table_args__"] if "op.create_index" in line else []
    )
    engine.dispose()
    assert index_in(tmp_path / "shop.db") == made


def test_several_indexes_have_a_line_each() -> None:
    lines = migration_of("sqlalchemy", f"{TWO} {LOWER}").splitlines()
    assert [line.split("(")[0] for line in lines] == [
        "Alembic: op.create_index",
        "and in __table_args__ of the model of shop_ticket: Index",
        "Alembic: op.execute",
    ]


def test_indexes_of_postgresql_are_made_outside_of_a_transaction() -> None:
    code = "CREATE INDEX CONCURRENTLY ON ticket (state);"
    assert migration_of("django", code) == (
        'Django: models.Index(fields=["state"]) in Meta.indexes of the model of ticket, and the'
        " operation AddIndexConcurrently (manage.py makemigrations)\n"
        "with `atomic = False` in the migration"
    )
    assert migration_of("sqlalchemy", code) == (
        "Alembic: with op.get_context().autocommit_block():"
        ' op.create_index("ticket_state_idx", "ticket", ["state"], postgresql_concurrently=True)\n'
        'and in __table_args__ of the model of ticket: Index("ticket_state_idx", "state")'
    )


@pytest.mark.parametrize("library", ["", "sqlite3", "peewee"])
def test_others_have_none(library: str) -> None:
    assert migration_of(library, TWO) == ""


@pytest.mark.parametrize(
    "code", ["", "ANALYZE;", "DROP INDEX a;", "CREATE INDEX", "CREATE INDEX x"]
)
def test_other_sql_has_none(code: str) -> None:
    assert migration_of("django", code) == ""
