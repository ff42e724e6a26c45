"""Check that a baseline is reproducible: run the same pytest command again in another process.

Another process recreates everything that may differ from run to run: fixtures of every scope, the
order of tests and of sets, workers, names generated at import.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from queryprof.analysis.baseline_rules import RegressionRules
from queryprof.analysis.units import counted
from queryprof.comparing.baseline_deviations import Deviation, differences_between_runs
from queryprof.comparing.baseline_figures import figures_from_baseline
from queryprof.errors import BaselineError, QueryprofError
from queryprof.report.text.causes import cut_statement, tests_in_words
from queryprof.testing.baseline_file import read_baseline
from queryprof.testing.baseline_lines import Tests

MAX_SHOWN = 20
"""Maximum number of unstable statements in the summary."""

MAX_LAST_LINES = 15
"""Lines to show of a failed second run's output."""

RUN_PYTEST = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a second run.

    Attributes:
        tests: number of tests that used the database in both runs.
        missing: tests that the second run lacks, or that did not pass there.
        differing: (test, difference).
    """

    tests: int
    missing: tuple[str, ...]
    differing: tuple[tuple[str, Deviation], ...]

    @property
    def is_stable(self) -> bool:
        return not self.missing and not self.differing

    def lines(self) -> list[str]:
        """Return lines about the unstable statements, each once, with its tests."""
        if self.is_stable:
            are = "is" if self.tests == 1 else "are"
            return [f"a second run executed the same: {counted(self.tests, 'test')} {are} stable"]
        lines = []
        if self.missing:
            lines.append(
                f"no calls in the second run, or did not pass: {tests_in_words(self.missing)}"
            )
        groups: dict[tuple[str, str], list[str]] = {}
        for test, deviation in self.differing:
            key = (cut_statement(deviation.statement), ", ".join(_differences_in_words(deviation)))
            groups.setdefault(key, []).append(test)
        ranked = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
        for (statement, differences), tests in ranked[:MAX_SHOWN]:
            lines.append(f"In {tests_in_words(tests)}: {statement}")
            lines.append(f"    {differences}")
        if len(ranked) > MAX_SHOWN:
            lines.append(f"... and {len(ranked) - MAX_SHOWN:,} more statements")
        unsteady = len({test for test, _ in self.differing} | set(self.missing))
        lines.append(
            f"{unsteady:,} tests execute different queries in a second run, so --queryprof-check"
            " would fail: make them repeatable, or exclude them:"
            " @pytest.mark.queryprof(baseline=False)"
        )
        return lines


def run_again(config: pytest.Config, first: Tests, rules: RegressionRules) -> Verification:
    """Run the tests again and compare the results.

    Args:
        first: the figures of each test that passed in this run.

    Raises:
        QueryprofError: the second run did not finish.
    """
    second = _run_again(config)
    both = [test for test in first if test in second]
    return Verification(
        tests=len(both),
        missing=tuple(test for test in first if test not in second),
        differing=tuple(
            (test, deviation)
            for test in both
            for deviation in differences_between_runs(
                figures_from_baseline(first[test]), figures_from_baseline(second[test]), rules
            )
        ),
    )


def _run_again(config: pytest.Config) -> Tests:
    """Return the figures of each test from a run of the same command in a child process."""
    with TemporaryDirectory(prefix="queryprof-") as directory:
        path = Path(directory) / "baseline.json"
        result = subprocess.run(
            [*_python_command(), *_arguments(config), "--queryprof-save-to", str(path)],
            cwd=config.invocation_params.dir,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        try:
            return read_baseline(str(path)).tests
        except BaselineError as error:
            lines = "\n".join(result.stdout.splitlines()[-MAX_LAST_LINES:])
            raise QueryprofError(
                f"the second run of the tests ended with status {result.returncode} before it"
                f" saved anything:\n{lines}"
            ) from error


def _python_command() -> list[str]:
    """Return the Python command of this run.

    `python -m pytest` puts the working directory first in sys.path; the script `pytest` does not.
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if main is not None and main.name == "pytest.__main__":
        return [sys.executable, "-m", "pytest"]
    return [sys.executable, "-P", "-c", RUN_PYTEST]


def _arguments(config: pytest.Config) -> list[str]:
    """Return the command's arguments, with options that separate the second run's files."""
    arguments = [os.fspath(argument) for argument in config.invocation_params.args]
    if config.pluginmanager.hasplugin("_cov"):
        arguments.append("--no-cov")
    if config.getoption("xmlpath", None):
        arguments.append(f"--junitxml={os.devnull}")
    return arguments


def _differences_in_words(deviation: Deviation) -> list[str]:
    """Describe the differences without saying which run did more."""
    if deviation.before is None:
        return ["in one of the two runs only"]
    words = {"a worse plan": "another plan"}
    return [
        words.get(reason, reason.replace("more ", "another number of "))
        for reason in deviation.reasons
    ]
