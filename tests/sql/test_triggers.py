"""The triggers that a statement fires match SQLite's."""

from __future__ import annotations

import sqlite3

import pytest

from queryprof.sql.triggers import fired_triggers, remaining_triggers

pytestmark = pytest.mark.once

SCHEMA = (
    "CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT, seen INTEGER)",
    "CREATE TABLE log (what TEXT)",
    "CREATE TRIGGER added AFTER INSERT ON note BEGIN INSERT INTO log VALUES ('added'); END",
    "CREATE TRIGGER IF NOT EXISTS changed UPDATE ON note BEGIN INSERT INTO log VALUES ('changed'); END",
    """CREATE TRIGGER "the text" BEFORE UPDATE OF text, id ON "Note"
    WHEN 1 BEGIN INSERT INTO log VALUES ('the text'); END""",
    "CREATE TEMP TRIGGER removed AFTER DELETE ON [note] BEGIN INSERT INTO log VALUES ('removed'); END",
    "CREATE TRIGGER 'in text' AFTER INSERT ON note BEGIN INSERT INTO log VALUES ('in text'); END",
    """CREATE TRIGGER "a ""b"" c" AFTER DELETE ON note
    BEGIN INSERT INTO log VALUES ('a "b" c'); END""",
    "CREATE TRIGGER gone AFTER INSERT ON note BEGIN INSERT INTO log VALUES ('gone'); END",
    "DROP TRIGGER IF EXISTS Gone",
    "CREATE TRIGGER of_log AFTER INSERT ON log BEGIN SELECT 1; END",
)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO note (text) VALUES ('a')",
        "REPLACE INTO note (text) VALUES ('a')",
        "UPDATE note SET seen = 1",
        "UPDATE OR IGNORE note SET text = 'b', seen = 1",
        "DELETE FROM main.note",
        "SELECT * FROM note",
    ],
)
def test_as_sqlite_fires_them(statement: str) -> None:
    db = sqlite3.connect(":memory:")
    for sql in SCHEMA:
        db.execute(sql)
    db.execute("INSERT INTO note VALUES (1, 'first', 0)")
    db.execute("DELETE FROM log")
    db.execute(statement)
    fired = {name for (name,) in db.execute("SELECT what FROM log")}
    assert {one.name for one in fired_triggers(statement, remaining_triggers(SCHEMA))} == fired
    db.close()


@pytest.mark.parametrize(
    "sql", ["", "CREATE TRIGGER", "CREATE TRIGGER a INSERT ON", "CREATE VIEW v AS SELECT 1"]
)
def test_what_creates_none(sql: str) -> None:
    assert remaining_triggers([sql]) == ()


def test_an_insert_that_may_update_fires_the_triggers_of_both() -> None:
    statement = "INSERT INTO note VALUES (1, 'a', 0) ON CONFLICT DO UPDATE SET seen = 1"
    fired = {one.name for one in fired_triggers(statement, remaining_triggers(SCHEMA))}
    assert fired == {"added", "in text", "changed"}


def test_which_triggers_have_a_condition() -> None:
    found = {one.name: one.has_condition for one in remaining_triggers(SCHEMA)}
    assert [name for name, has_condition in found.items() if has_condition] == ["the text"]
    case = "CREATE TRIGGER a INSERT ON t BEGIN SELECT CASE WHEN 1 THEN 2 END; END"
    assert not remaining_triggers([case])[0].has_condition
    assert not remaining_triggers(["CREATE TRIGGER a INSERT ON t WHEN 1"])[0].has_condition
