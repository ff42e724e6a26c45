"""Random names are folded in the baseline's key, or paired."""

from __future__ import annotations

import dataclasses
import random
import string
import time
import uuid
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryprof.analysis.baseline_rules import RegressionRules
from queryprof.comparing.baseline_deviations import (
    deviations_from_baseline,
    differences_between_runs,
)
from queryprof.comparing.baseline_figures import StatementFigures, fold_statement_names
from queryprof.comparing.random_names import fold_random_names
from queryprof.comparing.renamed import pair_renamed_statements, statement_structure

pytestmark = pytest.mark.once

RULES = RegressionRules()


def figures(executions: int = 1, rows: int = 0, plan: str = "") -> StatementFigures:
    plans = ((plan,),) if plan else ()
    return StatementFigures(executions, rows, 10 * executions, 0, plans=plans)


@pytest.mark.parametrize(
    "name",
    [
        lambda: "t" + uuid.uuid4().hex,
        lambda: f'"orders-{uuid.uuid4()}"',
        lambda: f"orders_{uuid.uuid4()}".replace("-", "_"),
        lambda: "dogs_new_6d89f8d32d58"[:-4] + f"{random.randrange(16**4):04x}",
        lambda: f"backup_{time.time_ns()}",
        lambda: f"tmp_{140_000_000_000_000 + random.randrange(10**9)}",
    ],
)
def test_the_random_part_of_a_name_is_folded(name: Callable[[], str]) -> None:
    """A statement then has the same key in all runs."""
    keys = {fold_random_names(f"INSERT INTO {name()}(id, name) VALUES (?, ?)") for _ in range(200)}
    assert len(keys) == 1
    assert "<random>" in keys.pop()


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT facade, deadbeef FROM decade WHERE feedback = ?",
        "CREATE TABLE log_2024(c1 varchar(?), x86_64 int)",
        "SELECT utf8, sha256, md5 FROM feed2",
    ],
)
def test_words_are_not_folded(statement: str) -> None:
    """Not every hex digit is random."""
    assert fold_random_names(statement) == statement


def test_statements_that_fold_to_one_key_add_up() -> None:
    """Their plans add up as well, with the tables folded."""
    folded = fold_statement_names(
        {
            "SELECT a FROM t040d2776c990": figures(2, 5, "SCAN t040d2776c990"),
            "SELECT a FROM t9b8116bb9158": figures(3, 1, "SCAN t9b8116bb9158"),
        }
    )
    assert folded == {
        "SELECT a FROM t<random>": StatementFigures(5, 6, 50, 0, plans=(("SCAN t<random>",),))
    }


WORDS = st.text(string.ascii_lowercase, min_size=3, max_size=10).map("n_{}".format)


@given(st.lists(WORDS, min_size=4, max_size=4, unique=True))
def test_statements_that_differ_in_names_have_one_structure(names: list[str]) -> None:
    """The structure does not depend on the names, as long as equal names stay equal."""
    table, column, other, quoted = names
    text = 'SELECT {0}.{1}, max({2}) FROM {0} JOIN "{3}" USING ({1}) WHERE {2} IN (?)'
    assert statement_structure(text.format(table, column, other, quoted)) == statement_structure(
        text.format("a", "b", "c", "d")
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM t ORDER BY a ASC", "SELECT a FROM t ORDER BY a DESC"),
        ("SELECT t.a FROM t JOIN u", "SELECT u.a FROM t JOIN u"),
        ("SELECT a FROM t WHERE b = ?", "SELECT a FROM t WHERE b + ? = ?"),
        ("SELECT a FROM t", "SELECT a, a FROM t"),
    ],
)
def test_another_query_has_another_structure(one: str, other: str) -> None:
    """The queries differ in more than names."""
    assert statement_structure(one) != statement_structure(other)


def test_a_statement_under_another_name_is_compared_as_one() -> None:
    """Equal figures pass. Worse figures fail, with both texts."""
    before = {"SELECT a FROM qwertyuiop WHERE b = ?": figures(2, 4)}
    after = "SELECT a FROM asdfghjklz WHERE b = ?"
    assert deviations_from_baseline(before, {after: figures(2, 4)}, RULES, True) == []
    (found,) = deviations_from_baseline(before, {after: figures(3, 4)}, RULES, True)
    assert found.reasons == ("more executions", "more VM steps")
    assert found.instead_of == "SELECT a FROM qwertyuiop WHERE b = ?"


OLD = 'SELECT "a"."id", "a"."x" FROM "a" WHERE "a"."id" = ?'
WIDER = 'SELECT "a"."id", "a"."x", "a"."pages" FROM "a" WHERE "a"."id" = ?'


@pytest.mark.parametrize(("was", "now"), [(OLD, WIDER), (WIDER, OLD)])
def test_a_column_more_or_less_passes(was: str, now: str) -> None:
    """Only the VM steps may differ. Another plan, or another execution or row, fails."""
    plans = (("SEARCH a USING INDEX i (id=?)",),)
    one = dataclasses.replace(figures(20, 40), plans=plans)
    more_steps = dataclasses.replace(one, vm_steps=9 * (one.vm_steps or 0))
    assert deviations_from_baseline({was: one}, {now: more_steps}, RULES, True) == []
    for change in (
        {"executions": 21},
        {"rows": 41},
        {"full_scan_steps": 7},
        {"plans": (("SCAN a",),)},
    ):
        worse = dataclasses.replace(more_steps, **change)  # type: ignore[arg-type]
        assert any(
            one.reasons for one in deviations_from_baseline({was: one}, {now: worse}, RULES, True)
        ), change


def test_another_statement_is_not_a_column_more() -> None:
    """The words of the shorter statement come in the same order, after the same first word."""
    one = figures(2, 4)
    more_steps = dataclasses.replace(one, vm_steps=9 * (one.vm_steps or 0))
    for now in ("SELECT b FROM u", "DELETE FROM t", 'INSERT INTO t SELECT "a" FROM t'):
        found = deviations_from_baseline(
            {"SELECT a, c FROM t": one}, {now: more_steps}, RULES, True
        )
        assert any(one.reasons for one in found), now


def test_pairs_are_one_to_one() -> None:
    """Similar statements are paired by how busy they are. The rest is new or gone."""
    gone = {"DROP TABLE a": (2, 0), "DROP TABLE b": (9, 0), "DROP TABLE c": (1, 0)}
    new = {
        "DROP TABLE x": (8, 0),
        "DROP TABLE y": (2, 0),
        "DROP TABLE z": (1, 1),
        "ANALYZE": (1, 0),
    }
    assert pair_renamed_statements(gone, new) == {
        "DROP TABLE x": "DROP TABLE b",
        "DROP TABLE y": "DROP TABLE a",
        "DROP TABLE z": "DROP TABLE c",
    }
    more = {**new, "DROP TABLE w": (1, 0)}
    assert sorted(pair_renamed_statements(gone, more).values()) == sorted(gone)


def test_a_new_statement_shows_what_went_away() -> None:
    """The output shows the most similar missing statement, if any."""
    before = {"SELECT a FROM t WHERE b = ?": figures(), "DELETE FROM t": figures()}
    (new,) = (
        d
        for d in deviations_from_baseline(
            before, {"SELECT a FROM t WHERE b + ? = ?": figures(9)}, RULES, True
        )
        if d.before is None
    )
    assert (new.reasons, new.instead_of) == (("a new statement",), "SELECT a FROM t WHERE b = ?")
    (new,) = (
        d
        for d in deviations_from_baseline(before, {"PRAGMA x": figures(), **before}, RULES, True)
        if d.reasons
    )
    assert new.instead_of == ""


def test_what_differs_between_two_runs_is_unstable_in_both_directions() -> None:
    """Either run may be the baseline of the other, so more and fewer both count."""
    more, fewer = {"S": figures(3), "T": figures()}, {"S": figures(2), "T": figures()}
    for first, second in ((more, fewer), (fewer, more)):
        assert [d.statement for d in differences_between_runs(first, second, RULES)] == ["S"]
    assert differences_between_runs(more, more, RULES) == []
    assert [d.statement for d in differences_between_runs(more, {"T": figures()}, RULES)] == ["S"]
