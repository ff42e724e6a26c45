"""Service, version and environment: from the process's environment to the trace and the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Run
from queryprof.collect.reader import read_profile
from queryprof.core.deployment import MAX_ATTRIBUTES, MAX_CHARACTERS, deployment_names
from queryprof.core.settings import read_settings

pytestmark = pytest.mark.once

Script = object
PROGRAM = "import sqlite3\nsqlite3.connect(':memory:').execute('SELECT 1').fetchall()\n"
OTEL = "OTEL_RESOURCE_ATTRIBUTES"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, (None, None, None)),
        ({"QUERYPROF_SERVICE": "shop", "QUERYPROF_VERSION": "2"}, ("shop", "2", None)),
        (
            {"OTEL_SERVICE_NAME": "shop", OTEL: "service.name=a,service.version=3"},
            ("shop", "3", None),
        ),
        ({OTEL: " service.name = a%20b , deployment.environment.name=p%2Cq"}, ("a b", None, "p,q")),
        ({OTEL: "deployment.environment=old"}, (None, None, "old")),
        ({OTEL: "service.version=1", "QUERYPROF_VERSION": "2"}, (None, "2", None)),
        ({OTEL: "," * MAX_ATTRIBUTES + "service.version=1"}, (None, None, None)),
        ({"QUERYPROF_SERVICE": "own", "OTEL_SERVICE_NAME": "other"}, ("own", None, None)),
        ({"QUERYPROF_SERVICE": "", OTEL: "service.name="}, (None, None, None)),
        ({OTEL: "no pair,,=,service.version=%zz%"}, (None, "%zz%", None)),
        ({OTEL: "service.name=%ff\udcff"}, ("\ufffd\udcff", None, None)),
        ({"QUERYPROF_SERVICE": "../x"}, ("../x", None, None)),
        ({"QUERYPROF_SERVICE": "s" * 10**6}, ("s" * MAX_CHARACTERS, None, None)),
        ({OTEL: "a=b," * 10**6}, (None, None, None)),
    ],
)
def test_names_are_read_and_never_refused(
    environ: dict[str, str], expected: tuple[str | None, ...]
) -> None:
    assert tuple(deployment_names(environ).values()) == expected
    assert dict(read_settings(environ=environ).deployment) == deployment_names(environ)


@pytest.mark.slow
def test_they_are_in_the_trace_and_shown(queryprof: Run, script: object, tmp_path: Path) -> None:
    path = tmp_path / "app.py"
    path.write_text(PROGRAM)
    environment = {
        "QUERYPROF_SERVICE": "shop",
        "QUERYPROF_ENVIRONMENT": "staging \udcff\x1b[31m",
        OTEL: "service.version=1.4.2",
    }
    result = queryprof("run", "--no-report", "-o", "x.qprof", path, env=environment)
    assert (result.returncode, result.stderr) == (0, "")
    (process,) = read_profile("x.qprof").processes
    assert (process.service, process.version) == ("shop", "1.4.2")
    shown = queryprof("report", "x.qprof").stdout
    assert "shop 1.4.2 (staging " in shown
    assert "\x1b" not in shown
    found = json.loads(queryprof("report", "x.qprof", "--format", "json").stdout)
    assert found["processes"][0]["service"] == "shop"
    assert "names       shop" in queryprof("doctor", env={"QUERYPROF_SERVICE": "shop"}).stdout
    assert read_profile("x.qprof").systems == {"SELECT ?": "sqlite"}


def test_the_system_of_each_driver(queryprof: Run, tmp_path: Path) -> None:
    """If one text goes to several systems, the first one counts. A driver that only the program
    knows is "other".
    """
    pytest.importorskip("duckdb")
    (tmp_path / "own.py").write_text(
        "class Cursor:\n    def execute(self, sql): return self\n"
        "class Connection:\n    def cursor(self): return Cursor()\n    def commit(self): pass\n"
        "def connect(): return Connection()\n"
    )
    (tmp_path / "app.py").write_text(
        "import duckdb, sqlite3, queryprof\n"
        "queryprof.instrument('own')\n"
        "import own\n"
        "a, b = sqlite3.connect(':memory:'), duckdb.connect()\n"
        "for one, other in ((a, b), (b, a)):\n"
        "    text = 'SELECT 1 AS ' + ('x' if one is a else 'y')\n"
        "    one.execute(text).fetchall(), other.execute(text).fetchall()\n"
        "own.connect().cursor().execute('SELECT 1 AS z')\n"
    )
    result = queryprof("run", "--no-report", "-o", "x.qprof", "app.py")
    assert (result.returncode, result.stderr) == (0, "")
    systems = read_profile("x.qprof").systems
    found = {
        name: system for text, system in systems.items() for name in "xyz" if f"AS {name}" in text
    }
    assert found == {"x": "sqlite", "y": "duckdb", "z": "other_sql"}
