"""Findings whose fix was measured on a copy: the proof, or that there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from queryprof.analysis.call_sites import CallSite
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.merging import ONE_EACH
from queryprof.findings.proved import NO_INDEX, NOT_TOGETHER, with_proofs
from queryprof.findings.scan_words import IN_JSON
from queryprof.model import Frame
from queryprof.model.advice import (
    Advice,
    Cost,
    DatabaseChange,
    NotMeasured,
    OutweighedIndexes,
    Proof,
    Rewrite,
)
from queryprof.report.findings.text import detail_lines

pytestmark = pytest.mark.once
SQL = "SELECT id FROM item WHERE price > ?"
INDEX = "CREATE INDEX item_price ON item (price);"
FRAME = Frame("prices", "shop.py", 7)


def finding(code: str = INDEX) -> Finding:
    site = CallSite(FRAME, ())
    return Finding(
        "full_scan", Severity.HIGH, 0.5, 10**9, SQL, site, None, (), "Create an index.", code
    )


def advice(
    after_ns: float,
    *outweighed: OutweighedIndexes,
    is_complete: bool = True,
    is_drawn: bool = False,
) -> Advice:
    is_proved = after_ns < 1e6
    change = DatabaseChange(
        INDEX, "DROP INDEX item_price;", "item_price", "item", 5e8, 4096, None, 0
    )
    before, after = Cost(1e6, 3000.0, 50.0), Cost(after_ns, 3000.0, 50.0)
    uses = ("item_price",) if is_proved else ()
    proof = Proof(SQL, 9, 9 * 10**6, before, after, uses, is_proved, "", is_drawn)
    changes = (change,) if is_proved else ()
    return Advice("a.db", changes, outweighed, (proof,), (), (), "3.40.1", "", 1, is_complete, 1.0)


def test_a_proved_index_is_the_fix() -> None:
    (one,) = with_proofs([finding()], advice(1e5))
    assert one.fix.startswith("proved: 1.00 ms -> 100 µs (x10)")
    assert one.code == INDEX


@pytest.mark.parametrize(("is_drawn", "severity"), [(False, "high"), (True, "low")])
def test_a_proof_on_recorded_values_leaves_no_doubt(is_drawn: bool, severity: str) -> None:
    doubtful = replace(finding(), severity=Severity.LOW, doubt="The index may not be used.")
    (one,) = with_proofs([doubtful], advice(1e5, is_drawn=is_drawn))
    assert (one.severity, bool(one.doubt)) == (severity, is_drawn)


def test_a_statement_that_was_not_measured_says_why() -> None:
    """The doubt does not send the reader to --prove again."""
    doubtful = replace(finding(), doubt="It may read most rows: --prove measures.")
    reasons = (NotMeasured(SQL, 9 * 10**6, "it calls tax(), a function of the program"),)
    unmeasured = replace(advice(1e5), proofs=(), changes=(), not_measured=reasons)
    (one,) = with_proofs([doubtful], unmeasured)
    assert one.doubt == ("--prove did not measure it: it calls tax(), a function of the program.")
    (sure,) = with_proofs([finding()], unmeasured)
    assert sure.doubt == ""


@pytest.mark.parametrize("library", ["", "django"])
def test_an_object_mapper_s_fix_is_not_replaced_by_sql(library: str) -> None:
    """The proof of one SQL query shows what its own fix may save."""
    per_row = replace(
        finding(""), category="n_plus_one", fix='`.select_related("owner")`.', library=library
    )
    before, after = Cost(1e6, 3000.0, 50.0), Cost(1e5, 300.0, 5.0)
    join = Rewrite(SQL, "SELECT 1 JOIN", "Sort it.", before, after, False, 3, False)
    (one,) = with_proofs([per_row], replace(advice(1e6), proofs=(), rewrites=(join,)))
    assert one.fix.startswith('`.select_related("owner")`.')
    assert "proved: 1.00 ms -> 100 µs (x10) after rewriting" in one.fix
    assert bool(one.code) == ("Sort it." in one.fix) == (not library)


def test_findings_are_sorted_again_once_they_are_proved() -> None:
    """Failing calls stay first."""
    other = replace(finding(""), statement="SELECT 1", severity=Severity.MEDIUM)
    fails = replace(other, category="lock_upgrade", severity=Severity.LOW)
    doubtful = replace(finding(), severity=Severity.LOW)
    sorted_again = with_proofs([fails, other, doubtful], advice(1e5))
    assert [one.category for one in sorted_again] == ["lock_upgrade", "full_scan", "full_scan"]
    assert [one.severity for one in sorted_again[1:]] == [Severity.HIGH, Severity.MEDIUM]


def test_each_line_of_a_migration_is_a_line_of_the_report() -> None:
    one = replace(finding(), library="sqlalchemy")
    assert one.migration.count("\n")
    code = [line for kind, line in detail_lines(one) if kind == "code"]
    assert code == [INDEX, *one.migration.split("\n")]


def test_an_index_of_json_does_not_hide_the_better_advice() -> None:
    (one,) = with_proofs([replace(finding(), fix=IN_JSON)], advice(1e5))
    assert one.fix.startswith(f"{IN_JSON} An index on the full JSON values: proved: ")


def test_an_index_that_won_nothing_is_no_advice_any_more() -> None:
    (one,) = with_proofs([finding()], advice(1e6))
    assert (one.fix, one.code) == (NO_INDEX, "")


def test_indexes_that_only_together_save_enough_are_kept() -> None:
    many = replace(finding(), fix=f"Create an index. 60 {ONE_EACH}.")
    (one,) = with_proofs([many], advice(1e6))
    assert one.code == INDEX
    assert one.fix == f"{many.fix} {NOT_TOGETHER}"


def test_an_index_that_slows_inserts_shows_gain_and_cost() -> None:
    other = OutweighedIndexes(
        "CREATE INDEX i ON item (name);", ("SELECT name FROM item",), 9e8, 1e9, 5
    )
    one = OutweighedIndexes("CREATE INDEX i ON item (price, id);", (SQL,), 2e8, 9e8, 70_000)
    (message,) = with_proofs([finding()], advice(1e6, other, one))
    assert message.code == one.sql
    assert "would save 200 ms, but would cost 70,000 recorded inserts 900 ms" in message.fix


def test_a_search_that_did_not_end_takes_nothing_away() -> None:
    assert with_proofs([finding()], advice(1e6, is_complete=False)) == (finding(),)


def test_advice_that_is_no_index_stays() -> None:
    assert with_proofs([finding("")], advice(1e6)) == (finding(""),)
