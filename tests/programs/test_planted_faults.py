"""Programs with one planted fault, and healthy ones that look like them: how often the first
finding is right.

Each program begins with the right categories, and with words that a right fix contains, written
down before queryprof saw the program. Lines that are a fair answer end with "# culprit".
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from queryprof.analysis.report import Report
from queryprof.collect.reader import read_profile
from queryprof.findings.finding import Finding, Severity
from queryprof.findings.lookup import findings_of

pytestmark = pytest.mark.once

FOLDER = Path(__file__).parent / "planted"
PROGRAMS = sorted(FOLDER.glob("*.py"))
FAULTY = [path for path in PROGRAMS if "_healthy_" not in path.name]
HEALTHY = [path for path in PROGRAMS if "_healthy_" in path.name]

PLACE, CATEGORY, FIX = 0.95, 0.90, 0.90
"""The number of faults with a right place, category and fix."""

MEDIUM = 0.10
"""The number of healthy programs with a medium finding. None has a severe one."""

Run = Callable[..., CompletedProcess[str]]


@pytest.mark.skipif(
    sys.version_info >= (3, 15), reason="what has no release for it yet is left out"
)
def test_what_they_import_is_installed() -> None:
    imported = {
        name
        for program in PROGRAMS
        for name in re.findall(r"^(?:import|from) (\w+)", program.read_text(), re.MULTILINE)
    }
    assert [name for name in sorted(imported) if find_spec(name) is None] == []


def recorded(queryprof: Run, program: Path) -> tuple[Finding, ...]:
    for old in Path().iterdir():
        if old.is_file():
            old.unlink()
    result = queryprof("run", "--no-report", "-o", "t.qprof", program)
    assert result.returncode == 0, result.stderr
    return findings_of(Report(read_profile("t.qprof")))


def judged(program: Path, found: tuple[Finding, ...]) -> tuple[bool, bool, bool]:
    """Return whether place, category and fix of the first finding are right."""
    text = program.read_text()
    categories = re.search(r"^# category: (.*)", text, re.MULTILINE)
    fix = re.search(r"^# fix: (.*)", text, re.MULTILINE)
    assert categories
    assert fix
    if not found:
        return False, False, False
    first, lines = found[0], text.splitlines()
    line = first.site.frame.line if first.site.frame else 0
    return (
        "# culprit" in lines[line - 1],
        first.category in categories[1].strip().split("|"),
        bool(re.search(fix[1].strip(), f"{first.fix}\n{first.code}", re.IGNORECASE)),
    )


@pytest.mark.slow
def test_faults_are_found(queryprof: Run) -> None:
    right = {path.stem: judged(path, recorded(queryprof, path)) for path in FAULTY}
    wrong = {name: one for name, one in right.items() if not all(one)}
    places, categories, fixes = (sum(one[n] for one in right.values()) for n in range(3))
    assert places >= PLACE * len(FAULTY), wrong
    assert categories >= CATEGORY * len(FAULTY), wrong
    assert fixes >= FIX * len(FAULTY), wrong


@pytest.mark.slow
def test_healthy_programs_are_left_alone(queryprof: Run) -> None:
    message = {
        path.stem: {one.severity: one.category for one in reversed(recorded(queryprof, path))}
        for path in HEALTHY
    }
    assert {name: one for name, one in message.items() if Severity.HIGH in one} == {}
    medium = {name: one for name, one in message.items() if Severity.MEDIUM in one}
    assert len(medium) <= MEDIUM * len(HEALTHY), medium
