"""A PostgreSQL server's plans and times of a trace's statements: `analyze --dsn`, and `no seq
scan`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from postgresql import binaries, newest, server

import queryprof
from conftest import Run
from queryprof.errors import QueryprofError
from queryprof.model.postgresql import ServerFacts
from queryprof.servers.postgresql.numbered import number_parameters
from queryprof.servers.postgresql.server import server_facts
from queryprof.servers.postgresql.times import times_by_statement, tokens_without_values

pytestmark = pytest.mark.once

psycopg = pytest.importorskip("psycopg")

TABLES = """
CREATE TABLE app_order (id serial PRIMARY KEY, customer int, total int, kind text, sort text);
INSERT INTO app_order (customer, total, kind)
    SELECT g % 1000, g, chr(97 + g % 20) FROM generate_series(1, 20000) AS g;
CREATE TABLE line (order_id int, item int);
INSERT INTO line SELECT 1 + g % 20000, g FROM generate_series(1, 40000) AS g;
CREATE INDEX ON line (order_id);
CREATE TABLE small (id int PRIMARY KEY, name text);
ANALYZE app_order, line, small;
UPDATE app_order SET kind = 'a', sort = 'a' WHERE id <= 15000;
"""

PROGRAM = """
import sys, psycopg
with psycopg.connect(sys.argv[1], autocommit=True) as db:
    def orders(customer):
        query = "SELECT id, total FROM app_order WHERE customer = %s"
        return db.execute(query, (customer,)).fetchall()
    def lines(order):
        query = "SELECT * FROM line WHERE order_id = %(order)s"
        return db.execute(query, {"order": order}).fetchall()
    for customer in range(20):
        for order, total in orders(customer):
            lines(order)
    for item in range(3):
        query = ("SELECT o.id, l.item FROM app_order AS o JOIN line AS l ON l.order_id = o.id"
                 " WHERE o.kind = o.sort")
        db.execute(query).fetchall()
    db.execute("SELECT now() - INTERVAL '1 day'").fetchone()
"""


@pytest.fixture(scope="module", params=["debian", "newest"])
def dsn(request: pytest.FixtureRequest) -> Iterator[str]:
    """Two servers: the system's, with pg_stat_statements, and one with GENERIC_PLAN but
    without it.
    """
    commands = binaries() if request.param == "debian" else newest()
    if not commands:
        pytest.skip(f"{request.param}: no PostgreSQL server")
    preloads = "-c shared_preload_libraries=pg_stat_statements"
    with server(commands, preloads if request.param == "debian" else "") as address:
        with psycopg.connect(address, autocommit=True) as connection:
            for statement in TABLES.split(";"):
                connection.execute(statement)
            if request.param == "debian":
                connection.execute("CREATE EXTENSION pg_stat_statements")
        yield address


def counts_statements(dsn: str) -> bool:
    with psycopg.connect(dsn) as connection:
        found = connection.execute(
            "SELECT 1 FROM pg_extension WHERE extname = 'pg_stat_statements'"
        )
        return found.fetchone() is not None


@pytest.mark.repeats
def test_analyze_names_scans_and_estimates_with_their_lines(queryprof: Run, dsn: str) -> None:
    Path("shop.py").write_text(PROGRAM)
    done = queryprof("run", "--no-report", "-o", "x.qprof", "shop.py", dsn)
    assert done.returncode == 0, done.stderr
    done = queryprof("analyze", "x.qprof", "--dsn", dsn, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    document: dict[str, Any] = json.loads(done.stdout)
    found = {one["category"]: one for one in document["findings"]}
    assert {"full_scan", "bad_estimate", "n_plus_one"} <= set(found)
    scan = found["full_scan"]
    assert scan["site"]["frame"]["function"] == "orders"
    assert scan["code"] == "CREATE INDEX CONCURRENTLY ON public.app_order (customer);"
    assert "reads all 20,000 rows of public.app_order" in scan["evidence"][0]
    estimate = found["bad_estimate"]
    assert "SELECT o.id, l.item" in estimate["statement"]
    assert any("rows have changed since" in one for one in estimate["evidence"])
    assert found["n_plus_one"]["site"]["frame"]["function"] == "lines"
    by_statement = {one["statement"]: one for one in document["server"]["statements"]}
    lines = by_statement["SELECT * FROM line WHERE order_id = %(order)s"]
    assert "Index Scan using line_order_id_idx on public.line" in lines["plan"][0]
    assert 'near "$1"' in by_statement["SELECT now() - INTERVAL ?"]["refused"]
    if counts_statements(dsn):
        assert document["server"]["times_off"] == ""
        assert lines["server_calls"] == 400
        assert lines["server_ns"] > 0
        assert lines["query_id"]
        assert any("(20 calls by all programs" in one for one in scan["evidence"])
    else:
        assert "pg_stat_statements is not in this database" in document["server"]["times_off"]
        assert lines["server_calls"] is None
    done = queryprof("analyze", "x.qprof", "--dsn", dsn)
    assert "On the server (PostgreSQL" in done.stdout
    assert "plans of" not in done.stdout  # they are known
    done = queryprof("analyze", "x.qprof")
    assert "the plans of" in done.stdout
    assert "On the server" not in done.stdout


def facts_of(dsn: str, *statements: str) -> ServerFacts:
    return server_facts(dsn, statements)


@pytest.mark.repeats
def test_a_text_of_a_stranger_is_no_more_than_planned(dsn: str) -> None:
    """Texts with several statements, and statements that execute or change something,
    do nothing.
    """
    texts = (
        "SELECT 1; DROP TABLE small",
        "SELECT 1) ; DROP TABLE small; --",
        "DELETE FROM small WHERE id = ?; COMMIT; DELETE FROM small",
        "WITH gone AS (DELETE FROM app_order RETURNING id) SELECT * FROM gone",
        "INSERT INTO small VALUES (?, ?)",
        "UPDATE small SET name = nextval(?)::text",
        "SELECT pg_sleep(?)",
        "SELECT set_config(?, ?, false)",
        "ANALYZE SELECT 1",
        "DROP TABLE small",
        "COPY small TO PROGRAM 'touch /tmp/x'",
        "SELECT $1; SELECT $2",
        "SELECT '\ud800'",
        "SELECT ?\0",
        "SELECT $99999999",
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
    )
    facts = facts_of(dsn, *texts)
    assert set(facts.plans) <= {texts[3], texts[4], texts[5], texts[6], texts[7], texts[15]}
    assert not any("secret" in reason for reason in facts.refused.values())
    assert texts[3] in facts.plans
    assert "multiple commands" in facts.refused[texts[0]]
    assert "multiple commands" in facts.refused[texts[2]]
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT count(*) FROM app_order").fetchone() == (20_000,)
        assert connection.execute("SELECT count(*) FROM small").fetchone() == (0,)


FUNCTIONS = """
CREATE FUNCTION counts() RETURNS bigint IMMUTABLE LANGUAGE sql
    AS 'SELECT nextval(''app_order_id_seq'')';
CREATE FUNCTION writes() RETURNS int IMMUTABLE LANGUAGE plpgsql
    AS $$ BEGIN INSERT INTO small VALUES (7, 'x'); RETURN 1; END $$;
CREATE FUNCTION tells() RETURNS int IMMUTABLE LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'secret %', (SELECT max(total) FROM app_order); END $$;
"""


def test_a_function_that_the_planner_calls_changes_and_reveals_nothing(dsn: str) -> None:
    """The planner evaluates a function that is declared immutable. A used sequence value is not
    rolled back.
    """
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(FUNCTIONS)
        last = connection.execute("SELECT last_value FROM app_order_id_seq").fetchone()
        facts = facts_of(dsn, "SELECT counts()", "SELECT writes()", "SELECT tells()")
        assert connection.execute("SELECT last_value FROM app_order_id_seq").fetchone() == last
        assert connection.execute("SELECT count(*) FROM small").fetchone() == (0,)
        for name in ("counts", "writes", "tells"):
            connection.execute(f"DROP FUNCTION {name}()")
    assert set(facts.refused) == {"SELECT counts()", "SELECT writes()", "SELECT tells()"}
    assert "secret" not in str(facts)
    assert "20000" not in facts.refused["SELECT tells()"]


@pytest.mark.repeats
def test_what_locks_a_table_is_waited_for_a_while(dsn: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("queryprof.servers.postgresql.server.MAX_REQUEST_MS", 1500)
    with psycopg.connect(dsn) as connection:
        connection.execute("LOCK TABLE small IN ACCESS EXCLUSIVE MODE")
        facts = facts_of(dsn, "SELECT * FROM small", "SELECT * FROM line")
    assert "timeout" in facts.refused["SELECT * FROM small"]
    assert "SELECT * FROM line" in facts.plans


@pytest.mark.repeats
def test_a_server_that_is_not_there_is_one_sentence(queryprof: Run, dsn: str) -> None:
    with pytest.raises(QueryprofError, match="the PostgreSQL server cannot be used: "):
        facts_of("host=/nowhere user=nobody", "SELECT 1")
    with pytest.raises(QueryprofError, match="the PostgreSQL server cannot be used: "):
        facts_of("no dsn at all", "SELECT 1")
    Path("lite.py").write_text("import sqlite3\nsqlite3.connect(':memory:').execute('SELECT 1')\n")
    queryprof("run", "--no-report", "-o", "x.qprof", "lite.py")
    done = queryprof("analyze", "x.qprof", "--dsn", dsn)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "no statement went to PostgreSQL; remove --dsn" in done.stderr


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT * FROM t WHERE a = ? AND b = %s", ("SELECT * FROM t WHERE a = $1 AND b = $2", 2)),
        ("SELECT %(a)s, %(b)s, %(a)s", ("SELECT $1, $2, $1", 2)),
        ("SELECT $2, ?, $1", ("SELECT $2, $3, $1", 3)),
        ("SELECT $1, 7 %s", ("SELECT $1, 7 %s", 1)),
        ("SELECT 5 %% 3, '?', \"%s\" -- ?", ("SELECT 5 % 3, '?', \"%s\" -- ?", 0)),
        ("SELECT %b, %t", ("SELECT $1, $2", 2)),
        ("SELECT '", ("SELECT '", 0)),
        ("SELECT $1001", None),
        ("SELECT " + "?, " * 1001 + "?", None),
        ("SELECT " + "1" * 10_000, None),
        ("SELECT \0", None),
    ],
)
def test_parameters_get_numbers(statement: str, expected: tuple[str, int] | None) -> None:
    assert number_parameters(statement) == expected


def test_the_server_s_text_is_compared_without_values() -> None:
    ours = "SELECT * FROM t WHERE a = %s AND b IN (?) AND c = 'x'"
    same = "select *  from T where a = $1 and b in ($2, $3,$4) and c = $5"
    assert tokens_without_values(ours) == tokens_without_values(same)
    assert tokens_without_values(ours) != tokens_without_values(same.replace("b in", "d in"))
    rows = [(1, same, 3, 30.0), (2, same, 1, 30.0), (3, "SELECT 1", 9, 1.0), (None, None, 1, 1.0)]
    from queryprof.model.postgresql import ServerPlan

    times = times_by_statement({ours: ServerPlan((), 1.0, 0, (), (), 2)}, rows)
    assert (times[ours].calls, times[ours].mean_ns) == (4, 15.0)


@pytest.mark.repeats
def test_no_seq_scan(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's tables are so small that each is scanned: the check is whether another plan is
    possible.
    """
    monkeypatch.setenv("QUERYPROF_DSN", dsn)

    def work(query: str) -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute(query, (1,)).fetchall()

    by_key, by_name = (f"SELECT * FROM small WHERE {name} = %s" for name in ("id", "name::int"))
    with queryprof.at_most(plans="no seq scan"):
        work(by_key)
    with queryprof.at_most(plans=["no seq scan of small", "no seq scan of public.small"]):
        work(by_key)
    with pytest.raises(AssertionError) as caught, queryprof.at_most(plans="no seq scan"):
        work(by_key)
        work(by_name)
    message = str(caught.value)
    assert message.count("Seq Scan on public.small") == 1
    assert f"{Path(__file__).name}:" in message
    with queryprof.at_most(plans="no seq scan of line"):
        with pytest.raises(AssertionError), queryprof.at_most(plans="no seq scan of small"):
            work(by_name)
        work("SELECT * FROM line WHERE order_id = %s")
    with (
        pytest.raises(AssertionError, match="no statement uses app_order"),
        queryprof.at_most(plans="no seq scan of app_order"),
    ):
        work(by_key)
    monkeypatch.setenv("QUERYPROF_DSN", "host=/nowhere")
    with (
        pytest.raises(AssertionError, match="cannot be checked: the PostgreSQL server"),
        queryprof.at_most(plans="no seq scan"),
    ):
        work(by_key)
    monkeypatch.delenv("QUERYPROF_DSN")
    with (
        pytest.raises(AssertionError, match="QUERYPROF_DSN is not set to a PostgreSQL server"),
        queryprof.at_most(plans="no seq scan"),
    ):
        work(by_key)


def test_without_psycopg_the_error_shows_what_is_needed(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from queryprof.errors import QueryprofError\n"
        "from queryprof.servers.postgresql.server import server_facts\n"
        "try: server_facts('', ['SELECT 1'])\n"
        "except QueryprofError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.strip().endswith(
        "need psycopg: in a clone of queryprof, run pip install '.[postgresql]'"
    )


TEST_SHOP = """
import psycopg, pytest

@pytest.mark.queryprof(plans="no seq scan of small")
def test_by_key():
    with psycopg.connect("service=shop") as db:
        db.execute("SELECT * FROM small WHERE id = %s", (1,)).fetchall()

@pytest.mark.queryprof(plans="no seq scan")
def test_by_name():
    with psycopg.connect("service=shop") as db:
        db.execute("SELECT * FROM small WHERE name = %s", ("x",)).fetchall()
"""


@pytest.mark.slow
def test_the_commands_of_the_page(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All commands except pip's run, with a service file. The second test has no index to use, and
    fails.
    """
    page = (Path(__file__).parents[2] / "docs" / "postgresql.md").read_text()
    shown = [
        line
        for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
        for line in block.split("\n")
    ]
    commands = [line for line in shown if line and not line.startswith("pip ")]
    assert len(commands) == 4
    Path("services").write_text("[shop]\n" + dsn.replace(" ", "\n") + "\n")
    monkeypatch.setenv("PGSERVICEFILE", str(Path("services").resolve()))
    Path("shop.py").write_text(PROGRAM.replace("sys.argv[1]", "'service=shop'"))
    Path("test_shop.py").write_text(TEST_SHOP)
    home = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", f"{home}{os.pathsep}{os.environ['PATH']}")
    for command in commands:
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        assert done.returncode == ("pytest" in command), (command, done.stdout, done.stderr)
    assert "Seq Scan on public.small" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
