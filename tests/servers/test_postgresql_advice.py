"""Uncertain advice about PostgreSQL's plans is not given, and nothing stays on its server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from postgresql import binaries, newest, server

import queryprof
from queryprof.analysis.report import Report
from queryprof.errors import QueryprofError
from queryprof.findings.finding import Finding
from queryprof.findings.lookup import findings_of, statements_sent_to
from queryprof.servers.postgresql.server import server_facts

pytestmark = pytest.mark.once

psycopg = pytest.importorskip("psycopg")

TABLES = """
CREATE TABLE hit (k int, active int, note text, at timestamptz);
INSERT INTO hit SELECT g % 50, (g % 100)::int, g, now() FROM generate_series(1, 100000) AS g;
CREATE INDEX ON hit (k) WHERE active = 1;
CREATE TABLE "Item" ("ownerId" int, "user" int);
INSERT INTO "Item" SELECT g % 5000, g FROM generate_series(1, 50000) AS g;
CREATE TABLE o (id int PRIMARY KEY, c int);
INSERT INTO o SELECT g, g % 100 FROM generate_series(1, 20000) AS g;
CREATE TABLE l (o int, x int);
INSERT INTO l SELECT g % 20000, g FROM generate_series(1, 40000) AS g;
CREATE INDEX ON l (o);
CREATE TABLE small (id int PRIMARY KEY, name text, data jsonb);
CREATE TABLE secret (x text);
INSERT INTO secret VALUES ('TOPSECRET');
CREATE SEQUENCE counter;
CREATE FUNCTION writes(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS
    $$BEGIN RETURN nextval('counter') + n; END$$;
CREATE FUNCTION tells() RETURNS int LANGUAGE plpgsql STABLE AS
    $$BEGIN RETURN (SELECT x FROM secret)::int; END$$;
ANALYZE
"""


@pytest.fixture(scope="module", params=["debian", "newest"])
def dsn(request: pytest.FixtureRequest) -> Iterator[str]:
    commands = binaries() if request.param == "debian" else newest()
    if not commands:
        pytest.skip(f"{request.param}: no PostgreSQL server")
    with server(commands) as address:
        with psycopg.connect(address, autocommit=True) as connection:
            for statement in TABLES.split(";\n"):
                connection.execute(statement)
        yield address


def findings(dsn: str, statement: str, values: Any = None, times: int = 3) -> list[Finding]:
    """Return the findings about some executions of a statement."""
    with queryprof.profile() as recording, psycopg.connect(dsn, autocommit=True) as connection:
        for _ in range(times):
            cursor = connection.execute(statement, values)
            if cursor.description:
                cursor.fetchall()
    report = Report(recording.profile)
    facts = server_facts(dsn, statements_sent_to(report, "postgresql"))
    assert facts.plans, facts.refused
    found = findings_of(report, server=facts)
    return [one for one in found if one.category in ("full_scan", "bad_estimate")]


MIN_ROW_NS = "queryprof.findings.server_plans.MIN_ROW_NS"


@pytest.fixture(autouse=True)
def any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept a scan of any duration, however fast the machine is."""
    monkeypatch.setattr(MIN_ROW_NS, 0)


@pytest.mark.repeats
def test_a_scan_that_was_not_made(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With these values the server uses the partial index, although the generic plan does not. An
    execution faster than one row of a scan was no scan.
    """
    statement = "SELECT note FROM hit WHERE k = 7 AND active = 1"
    (scan,) = findings(dsn, statement, times=50)
    assert scan.category == "full_scan"
    monkeypatch.setattr(MIN_ROW_NS, 1e6)
    assert not findings(dsn, statement, times=50)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE o SET c = o.c FROM l WHERE l.o = o.id AND o.c < 50",
        f"SELECT o.id FROM o JOIN l ON l.o = o.id WHERE o.id IN ({', '.join(map(str, range(800)))})",
        "SELECT o.id FROM o JOIN l ON l.o = o.id ORDER BY l.x LIMIT 20",
        "SELECT o.id FROM o JOIN l ON l.o = o.id WHERE l.x > 39900",
    ],
)
@pytest.mark.repeats
def test_an_estimate_for_other_values_is_none(dsn: str, statement: str) -> None:
    assert not [one for one in findings(dsn, statement) if one.category == "bad_estimate"]


@pytest.mark.repeats
def test_an_index_is_sql_that_the_server_takes_and_uses(dsn: str) -> None:
    statement = 'SELECT "user" FROM "Item" WHERE "ownerId" = %s AND "user" = %s'
    (scan,) = findings(dsn, statement, (7, 7))
    assert scan.code == 'CREATE INDEX CONCURRENTLY ON public."Item" ("ownerId", "user");'
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(scan.code)
        try:
            assert not findings(dsn, statement, (7, 7))
        finally:
            connection.execute('DROP INDEX "Item_ownerId_user_idx"')


@pytest.mark.parametrize(
    ("statement", "values", "on"),
    [
        ("SELECT note FROM hit WHERE lower(note) = lower(%s)", ("5",), "((lower(note)))"),
        ("SELECT k FROM hit WHERE %s = note", ("5",), "(note)"),
        ("SELECT h.k FROM hit AS h WHERE left(h.note, 3) = %s", ("555",), ""),
    ],
)
@pytest.mark.repeats
def test_an_index_is_on_what_is_compared(
    dsn: str, statement: str, values: tuple[object, ...], on: str
) -> None:
    """The compared column may be on either side. An expression that contains parameters has no
    index.
    """
    (scan,) = findings(dsn, statement, values)
    assert scan.code == (f"CREATE INDEX CONCURRENTLY ON public.hit {on};" if on else "")
    with psycopg.connect(dsn) as connection:
        for sql in filter(None, [scan.code.replace(" CONCURRENTLY", "")]):
            connection.execute(sql)
            plan = connection.execute(f"EXPLAIN {statement.replace('%s', repr(values[0]))}")
            assert "Index Scan" in str(plan.fetchall())
        connection.rollback()


@pytest.mark.parametrize("has_index", [False, True])
@pytest.mark.repeats
def test_a_foreign_key_without_an_index(dsn: str, has_index: bool) -> None:
    """Each deleted row reads the referring table, which no plan shows."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE part (id int PRIMARY KEY)")
        connection.execute("INSERT INTO part SELECT generate_series(1, 2000)")
        connection.execute('CREATE TABLE "Use" (id int PRIMARY KEY, "Part" int REFERENCES part)')
        connection.execute('INSERT INTO "Use" SELECT g, 2000 FROM generate_series(1, 20000) AS g')
        if has_index:
            connection.execute('CREATE INDEX ON "Use" ("Part")')
        connection.execute('ANALYZE part, "Use"')
        try:
            found = findings(dsn, "DELETE FROM part WHERE id IN (SELECT id FROM part LIMIT 20)")
            codes = [one.code for one in found if "refers to the table" in "".join(one.evidence)]
        finally:
            connection.execute('DROP TABLE "Use", part')
    sql = 'CREATE INDEX CONCURRENTLY ON public."Use" ("Part");'
    assert codes == ([] if has_index else [sql])


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT note FROM hit WHERE note = '5' OR active = 1000",
        "SELECT note FROM hit WHERE active NOT IN (1, 2) AND note LIKE '%zz%'",
        "SELECT note FROM hit WHERE ((note = '5') = (k = 3)) AND note::float = 5",
        "SELECT note FROM hit WHERE to_char(k, note) = '5'",
        "SELECT note FROM hit WHERE md5(note) = reverse(note)",
        "SELECT note FROM hit WHERE active::text = '5'",
        "SELECT note FROM hit WHERE upper(at::text) = '5'",
        "SELECT note FROM hit WHERE active = ALL ('{5}')",
    ],
)
@pytest.mark.repeats
def test_no_index_is_shown_where_one_may_serve_nothing(dsn: str, statement: str) -> None:
    assert not any(one.code for one in findings(dsn, statement))


SHADOWS = """
CREATE FUNCTION public.quote_ident(name) RETURNS text LANGUAGE sql AS $$ SELECT 'public.shadow' $$;
CREATE FUNCTION public.lower(name) RETURNS text LANGUAGE sql AS $$ SELECT 'shadow' $$;
CREATE FUNCTION public.cardinality(int2[]) RETURNS int LANGUAGE sql AS $$ SELECT 1 / 0 $$;
CREATE FUNCTION public.is_in(int2[], int2[]) RETURNS bool LANGUAGE sql AS $$ SELECT 1 / 0 = 1 $$;
CREATE OPERATOR public.@> (LEFTARG = int2[], RIGHTARG = int2[], FUNCTION = public.is_in)
"""


@pytest.mark.repeats
def test_functions_of_others_that_fit_better_are_not_called(dsn: str) -> None:
    """They would run with the rights of the caller, and write the advice."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in SHADOWS.split(";\n"):
            connection.execute(statement)
        try:
            found = findings(dsn, "SELECT note FROM hit WHERE note = '5'")
            plain = findings(dsn, "DELETE FROM o WHERE id < 0")
        finally:
            connection.execute("DROP OPERATOR public.@> (int2[], int2[])")
            for name in ("quote_ident(name)", "lower(name)", "cardinality(int2[])"):
                connection.execute(f"DROP FUNCTION public.{name}")
            connection.execute("DROP FUNCTION public.is_in")
    assert [one.code for one in found] == ["CREATE INDEX CONCURRENTLY ON public.hit (note);"]
    assert not any("shadow" in one.code for one in plain)


KEYS = """
CREATE TABLE shop (id int PRIMARY KEY, name text);
INSERT INTO shop SELECT g, g FROM generate_series(1, 3000) AS g;
CREATE TABLE sale (shop int REFERENCES shop, day int) PARTITION BY RANGE (day);
CREATE TABLE sale1 PARTITION OF sale FOR VALUES FROM (0) TO (100);
INSERT INTO sale SELECT 3000, 1 FROM generate_series(1, 20000) AS g;
ALTER TABLE sale ADD CONSTRAINT again FOREIGN KEY (shop) REFERENCES shop;
ANALYZE shop, sale
"""


@pytest.mark.parametrize(
    ("index", "statement", "codes"),
    [
        ("", "DELETE FROM shop WHERE id < 20", ["CREATE INDEX ON public.sale (shop);"]),
        ("", "UPDATE shop SET id = -id WHERE id < 20", ["CREATE INDEX ON public.sale (shop);"]),
        ("", "UPDATE shop SET name = repeat('x', 9) WHERE id < 20", []),
        ("CREATE INDEX ON sale (shop)", "DELETE FROM shop WHERE id < 20", []),
        (
            "CREATE INDEX ON sale USING brin (shop)",
            "DELETE FROM shop WHERE id < 20",
            ["CREATE INDEX ON public.sale (shop);"],
        ),
    ],
)
@pytest.mark.repeats
def test_the_index_of_a_foreign_key(dsn: str, index: str, statement: str, codes: list[str]) -> None:
    """It covers partitioned tables. Two keys on one column need one index, not CONCURRENTLY. An
    UPDATE that does not change the key reads nothing, and a BRIN index finds no row.
    """
    with psycopg.connect(dsn, autocommit=True) as connection:
        for one in KEYS.split(";\n"):
            connection.execute(one)
        try:
            if index:
                connection.execute(index)
            found = findings(dsn, statement)
            created = [one.code for one in found if "refers to the table" in "".join(one.evidence)]
            for code in created:
                connection.execute(code)
        finally:
            connection.execute("DROP TABLE sale, shop")
    assert created == codes


@pytest.mark.repeats
def test_each_half_of_a_union_has_its_own_index(dsn: str) -> None:
    statement = "SELECT k FROM hit WHERE note = '5' UNION ALL SELECT c FROM o WHERE c = 1000"
    (scan,) = findings(dsn, statement)
    assert scan.code in (
        "CREATE INDEX CONCURRENTLY ON public.hit (note);",
        "CREATE INDEX CONCURRENTLY ON public.o (c);",
    )


@pytest.mark.repeats
def test_what_reads_all_along_an_index_is_a_seq_scan_of_a_test(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUERYPROF_DSN", dsn)

    def passes(statement: str) -> bool:
        message = ""
        with psycopg.connect(dsn) as connection:
            try:
                with queryprof.at_most(plans="no seq scan"):
                    connection.execute(statement).fetchall()
            except AssertionError as error:
                message = str(error)
        assert "cannot be checked" not in message
        return not message

    assert passes("SELECT * FROM o WHERE id = 5")
    assert passes("SELECT * FROM o ORDER BY id LIMIT 5")
    assert not passes("SELECT * FROM o WHERE c = 5 ORDER BY id")
    assert not passes("SELECT count(*) FROM o")
    assert not passes("SELECT * FROM small WHERE data @> '{}'")


def test_operators_of_postgresql_are_kept_whole(dsn: str) -> None:
    with queryprof.profile() as recording, psycopg.connect(dsn) as connection:
        connection.execute("SELECT id FROM small WHERE data @> '{}' AND data #>> '{a}' = 'b'")
        connection.execute("SELECT id %% 3 - -5, name ~* 'x' FROM small WHERE id=%s", (1,))
        connection.execute("SELECT (ARRAY['SECRET-1', 'x'])[99887701], ARRAY[77665544]")
        connection.execute("SELECT (ARRAY[1, 2])[1:66554433]")
    statements = statements_sent_to(Report(recording.profile), "postgresql")
    assert set(statements) >= {
        "SELECT id FROM small WHERE data @> ? AND data #>> ? = ?",
        "SELECT id %% ? - ?, name ~* ? FROM small WHERE id = %s",
    }
    text = "".join(statements)
    assert not any(value in text for value in ("SECRET", "99887701", "77665544", "66554433"))
    facts = server_facts(dsn, statements)
    assert all(one in facts.plans for one in statements if "small" in one), facts.refused


def test_nothing_stays_on_the_server(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pooler passes the session to others: its settings are restored, and nothing is prepared or
    open.
    """
    settings = """
        SELECT name, setting FROM pg_settings WHERE name IN ('default_transaction_read_only',
            'statement_timeout', 'lock_timeout', 'plan_cache_mode', 'enable_seqscan',
            'compute_query_id', 'client_encoding') ORDER BY name
    """
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as pooled:
        before = pooled.execute(settings).fetchall()
        pooled.autocommit = False

        @contextmanager
        def connect(**_: Any) -> Iterator[Any]:
            yield pooled

        monkeypatch.setattr(psycopg, "connect", connect)
        facts = server_facts(
            dsn, ["SELECT * FROM o WHERE id = ?", "SELECT nonsense"], avoids_seq_scans=True
        )
        assert len(facts.plans) == 1
        assert pooled.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        pooled.autocommit = True
        assert pooled.execute(settings).fetchall() == before
        assert pooled.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)


def test_functions_write_nothing_and_tell_nothing(dsn: str) -> None:
    """The planner calls some functions. The transaction is read-only, and error messages with
    values are not shown.
    """
    texts = (
        "SELECT * FROM o WHERE id = writes(5)",
        "SELECT * FROM o WHERE id < tells()",
        "SELECT * FROM o WHERE id < current_setting('data_directory')::int",
    )
    facts = server_facts(dsn, texts)
    assert "25006" in facts.refused[texts[0]]  # of a read-only transaction
    assert "22P02" in facts.refused[texts[1]]
    output = "".join(facts.refused.values())
    assert "TOPSECRET" not in output
    assert "/data" not in output
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT is_called FROM counter").fetchone() == (False,)


def test_requests_end_after_a_time_in_all(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queryprof.servers.postgresql.server.BUDGET_S", -1)
    facts = server_facts(dsn, ["SELECT 1", "SELECT 2"])
    assert (facts.plans, facts.left_out) == ({}, 2)


@pytest.fixture
def ascii_dsn(dsn: str) -> Iterator[str]:
    """A database whose texts may contain any bytes, as initdb creates it with LANG=C."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE DATABASE bytes TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'"
        )
        yield f"{dsn} dbname=bytes"
        connection.execute("DROP DATABASE bytes")


@pytest.mark.repeats
def test_a_database_without_an_encoding(ascii_dsn: str) -> None:
    with psycopg.connect(ascii_dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE hit (k int, note text)")
        connection.execute("INSERT INTO hit SELECT g % 5000, g FROM generate_series(1, 50000) AS g")
        connection.execute("ANALYZE")
    (scan,) = findings(ascii_dsn, "SELECT note FROM hit WHERE k = %s", (7,))
    assert scan.code == "CREATE INDEX CONCURRENTLY ON public.hit (k);"


@pytest.mark.repeats
def test_a_name_that_is_no_unicode(ascii_dsn: str) -> None:
    with psycopg.connect(ascii_dsn, autocommit=True) as connection:
        connection.execute(b'CREATE TABLE hit ("\xff" int, k int)')
    with pytest.raises(QueryprofError, match=r'invalid byte sequence for encoding "UTF8": 0xff'):
        server_facts(ascii_dsn, ["SELECT k FROM hit WHERE k = ?"])
