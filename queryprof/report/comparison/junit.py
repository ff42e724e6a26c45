"""A comparison as JUnit XML: one test case per statement, failed if the statement got worse.

It uses the elements that all CI servers support (https://github.com/testmoapp/junitxml).
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as ET

from queryprof.comparing.comparison_result import Comparison, MetricChange, StatementChange
from queryprof.report.inert import xml_text
from queryprof.report.places import Places
from queryprof.report.text.comparison import change_text, title, where


def comparison_junit(
    comparison: Comparison, failed: Iterable[StatementChange | MetricChange], places: Places
) -> str:
    """Return the comparison as a test suite in which the changes in `failed` are failures."""
    failures = list(failed)
    cases: list[StatementChange | MetricChange] = [*comparison.statements, *comparison.whole]
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
            text = f"{change_text(case)}, at {place}" if place else change_text(case)
            ET.SubElement(element, "failure", message=xml_text(text), type="regression")
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)
