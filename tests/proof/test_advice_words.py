"""Advice that is proved in part says so in its title, its summary and at each change."""

from __future__ import annotations

import pytest

from queryprof.model.advice import Advice, Cost, DatabaseChange, Proof
from queryprof.report.text.advice import advice_title, change_in_words, saving_summary

pytestmark = pytest.mark.once

DIFFER = "the rows differ"


def proof(statement: str, index: str, doubt: str = "") -> Proof:
    before, after = Cost(4e6, 3000.0, 50.0), Cost(1e6, 30.0, 5.0)
    return Proof(statement, 9, 36 * 10**6, before, after, (index,), not doubt, doubt, False)


def advice(*proofs: Proof) -> Advice:
    changes = tuple(
        DatabaseChange(f"CREATE INDEX {name} ON t (a);", "", name, "t", 27e6, 0, None, 0)
        for name in dict.fromkeys(one.uses[0] for one in proofs)
    )
    return Advice("a.db", changes, (), proofs, (), (), "3.40.1", "", 1, True, 1.0)


@pytest.mark.parametrize(
    ("proofs", "title", "summary", "words"),
    [
        ([proof("S", "i")], "Proved", "to 9.00 ms", [""]),
        (
            [proof("S", "i"), proof("T", "j", DIFFER)],
            "Partly proved",
            "to 18.0 ms; 27.0 ms of this is not proved",
            ["", ", not proved"],
        ),
        (
            [proof("S", "i"), proof("T", "i", DIFFER)],
            "Partly proved",
            "to 18.0 ms; 27.0 ms of this is not proved",
            [", not proved for 1 of 2 statements"],
        ),
    ],
)
def test_partly_proved(proofs: list[Proof], title: str, summary: str, words: list[str]) -> None:
    found = advice(*proofs)
    assert advice_title(found) == title
    assert saving_summary(found).endswith(summary)
    said = [change_in_words(change, found).partition("%)")[2] for change in found.changes]
    assert said == words
