"""Queries whose rows become objects, of which the program reads few columns."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.by_hand import profile_of
from findings.line_profiles import MS, SITE, loop

from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding
from queryprof.findings.source_lines import UnknownSourceLines
from queryprof.model import Frame, ParameterSample, StackSample

pytestmark = pytest.mark.once

SIX = "SELECT t.id, t.name, t.size, t.text, t.kind, t.day FROM t"
SAME = 20
"""Executions without parameters: a duplicate query."""


class Reading(UnknownSourceLines):
    """Source whose loop over the rows reads only these attributes."""

    def __init__(self, *names: str, reduction: str = "") -> None:
        self._names, self._reduction = names, reduction

    def only_attributes(self, frame: Frame) -> tuple[str, ...]:
        return self._names

    def row_reduction(self, frame: Frame, attribute: str = "", is_lazy: bool = False) -> str:
        return self._reduction


def found(library: str, rows: int, lines: UnknownSourceLines) -> list[Finding]:
    driver, time = loop(SIX, SAME, SAME, pass_ns=10 * MS, count=SAME)
    driver = driver._replace(rows=rows * SAME, self_ns=6 * SAME * MS, total_ns=6 * SAME * MS)
    mapper = Frame("x", f"/venv/site-packages/{library}/x.py", 1, "library")
    one = replace(
        profile_of(driver),
        line_times=(time,),
        stack_samples=(StackSample(SIX, (mapper, *SITE), 1, MS),),
    )
    return [*find_all(Report(one), lambda *_: None, {}, lines=lines)]


@pytest.mark.parametrize(
    ("library", "fix"),
    [
        ("django", '`.values_list("name", "size")`'),
        ("sqlalchemy", "`select(Model.name, Model.size)`"),
        ("peewee", "`Model.select(Model.name, Model.size).tuples()`"),
        ("tortoise", '`.values_list("name", "size")`'),
    ],
)
def test_words_of_each_library(library: str, fix: str) -> None:
    (one,) = found(library, 50, Reading("name", "size"))
    assert one.category == "many_objects"
    assert one.doubt.startswith("An attribute may be a property")
    assert one.fix.endswith(f"{fix}.")
    assert one.gain_ns == pytest.approx(0.75 * 10 * SAME * MS)


@pytest.mark.parametrize(
    ("rows", "names", "is_reported"),
    [
        (50, ("pk",), True),
        (49, ("pk",), False),
        (50, ("id", "name", "size"), False),  # half of the columns
        (50, ("title",), False),  # no column
        (50, (), False),
    ],
)
def test_few_columns_of_many_rows(rows: int, names: tuple[str, ...], is_reported: bool) -> None:
    some = found("django", rows, Reading(*names))
    assert any("without objects" in one.fix for one in some) == is_reported


@pytest.mark.parametrize(
    ("lines", "category"),
    [
        (Reading("pk"), "many_objects"),
        (Reading(reduction="filter"), "over_fetch"),
        (Reading(), "duplicate_query"),
    ],
)
def test_a_query_that_repeats_and_returns_too_much(
    lines: UnknownSourceLines, category: str
) -> None:
    """What each execution needs is certain; whether the result may be kept is not."""
    driver, time = loop(SIX, SAME, SAME, pass_ns=45 * MS, count=SAME)
    library = "sqlite3" if category == "over_fetch" else "django"
    driver = driver._replace(rows=1000 * SAME, self_ns=30 * SAME * MS, total_ns=30 * SAME * MS)
    mapper = Frame("x", f"/venv/site-packages/{library}/x.py", 1, "library")
    one = replace(
        profile_of(driver),
        line_times=(time,),
        stack_samples=(StackSample(SIX, (mapper, *SITE), 1, MS),),
        parameters=(ParameterSample(SIX, SITE, SAME, SAME - 1),),
    )
    (result,) = find_all(Report(one), lambda *_: None, {}, lines=lines)
    assert result.category == category
    kept = any("run the query once and keep the result" in each for each in result.evidence)
    assert kept == (category != "duplicate_query")
