"""A comparison as JUnit XML: one test case per statement, failed if the statement got worse.

It uses the elements that all CI servers support (https://github.com/testmoapp/junitxml).
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as ET

from queryprof.comparing.comparison_result import Comparison, MetricChange, StatementChange
from queryprof.report.inert import escape_xml
from queryprof.report.places import Places
from queryprof.report.text.comparison import change_line, changed_thing, most_changed_site


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
        place = most_changed_site(case, places) if isinstance(case, StatementChange) else ""
        element = ET.SubElement(
            suite,
            "testcase",
            classname="queryprof.statements" if place else "queryprof.run",
            name=escape_xml(changed_thing(case)),
        )
        if case in failures:
            text = f"{change_line(case)}, at {place}" if place else change_line(case)
            ET.SubElement(element, "failure", message=escape_xml(text), type="regression")
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)
