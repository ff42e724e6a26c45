"""A comparison as JUnit XML: a test case a statement, failed where it got worse.

The elements are those that CI servers agree on (https://github.com/testmoapp/junitxml).
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as ET

from queryprof.analysis.comparison_result import Change, Comparison, StatementChange
from queryprof.report.inert import xml_text
from queryprof.report.places import Places
from queryprof.report.text.comparison import described, title, where


def comparison_junit(
    comparison: Comparison, failed: Iterable[StatementChange | Change], places: Places
) -> str:
    """The comparison as a test suite; `failed` are the changes that count as failures."""
    failures = list(failed)
    cases: list[StatementChange | Change] = [*comparison.statements, *comparison.whole]
    suite = ET.Element(
        "testsuite",
        name="queryprof compare",
        tests=str(len(cases)),
        failures=str(len(failures)),
        errors="0",
        skipped="0",
    )
    for case in cases:
        place = where(case, places) if isinstance(case, StatementChange) else ""
        element = ET.SubElement(
            suite,
            "testcase",
            classname="queryprof.statements" if place else "queryprof.run",
            name=xml_text(title(case)),
        )
        if case in failures:
            text = f"{described(case)}, at {place}" if place else described(case)
            ET.SubElement(element, "failure", message=xml_text(text), type="regression")
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)
