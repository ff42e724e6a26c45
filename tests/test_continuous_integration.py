"""The workflow and the pre-commit entry of the documentation, as far as they run
without a network.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

pytestmark = [pytest.mark.once, pytest.mark.usefixtures("installed_plugins")]

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "testing.md"
REGRESSION = ("GROUP BY customer.id", "GROUP BY customer.id + 0")


def place() -> str:
    """Return the line where the regression's statement is executed."""
    source = Path("orders.py").read_text()
    before = source[: source.index("SELECT name, sum(amount)")]
    return f"line={before.count(chr(10))}"


def documents() -> list[Any]:
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [yaml.safe_load(block) for block in blocks]


def environment(**extra: str) -> dict[str, str]:
    path = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
    return {**os.environ, "PATH": path, "NO_COLOR": "1", **extra}


def sh(command: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a step as GitHub's runner does."""
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        env=environment(**extra),
        timeout=300,
        check=False,
    )


@pytest.fixture
def base() -> str:
    """Create a repository with the example project and a baseline. Return its commit."""
    for file in (ROOT / "examples" / "orders").glob("*.py"):
        shutil.copy(file, ".")
    assert sh("python -m pytest -q -p no:cacheprovider --queryprof-save").returncode == 0
    Path(".gitignore").write_text("__pycache__\n.pytest_cache\n*.qprof\nsummary.md\n")
    commit("The shop")
    return sh("git rev-parse HEAD").stdout.strip()


def commit(message: str) -> None:
    who = "-c user.name=somebody -c user.email=somebody@example.org"
    result = sh(f"git init -q -b main && git add -A && git {who} commit -qm '{message}'")
    assert result.returncode == 0, result.stderr


def workflow(base: str, steps: int = 3) -> dict[str, subprocess.CompletedProcess[str]]:
    """Run this many of the first steps that are commands and need no network, by name."""
    (job,) = documents()[0]["jobs"].values()
    done: dict[str, subprocess.CompletedProcess[str]] = {}
    for step in job["steps"]:
        if "run" in step and "pip install" not in step["run"] and len(done) < steps:
            given = {
                name: value.replace("${{ github.event.pull_request.base.sha }}", base)
                for name, value in step.get("env", {}).items()
            }
            assert not any("${{" in value for value in given.values())
            done[step["name"]] = sh(step["run"], GITHUB_STEP_SUMMARY="summary.md", **given)
    return done


@pytest.mark.slow
def test_the_workflow(base: str) -> None:
    """A harmless change passes; a regression fails in both gates, with annotations and a table."""
    source = Path("orders.py").read_text()
    Path("orders.py").write_text(
        source.replace("row = shop", "found = shop").replace("row[0]", "found[0]")
    )
    commit("A renamed variable")
    passed = workflow(base, steps=2)
    assert [step.returncode for step in passed.values()] == [0, 0], passed
    Path("orders.py").write_text(source.replace(*REGRESSION))
    commit("A sum around an indexed column")
    checked, compared, result = workflow(base).values()
    assert checked.returncode == 1
    assert "a new statement" in checked.stdout
    assert place().replace("line=", "orders.py:") in checked.stdout
    assert compared.returncode == 1
    assert f"::error file=orders.py,{place()}" in compared.stdout, compared.stdout
    assert result.returncode == 0
    assert "customer.id + ?" in Path("summary.md").read_text()


@pytest.mark.slow
def test_the_pre_commit_entry(base: str) -> None:
    """pre-commit runs the hook exactly as the page shows it."""
    pytest.importorskip("pre_commit")
    assert base
    Path(".pre-commit-config.yaml").write_text(yaml.safe_dump(documents()[1]))
    commit("pre-commit")
    command = f"{sys.executable} -m pre_commit run --all-files"
    home = str(Path("home").absolute())
    passed = sh(command, PRE_COMMIT_HOME=home)
    assert passed.returncode == 0, passed.stdout
    source = Path("orders.py").read_text()
    Path("orders.py").write_text(source.replace(*REGRESSION))
    failed = sh(command, PRE_COMMIT_HOME=home)
    assert failed.returncode == 1
    assert place().replace("line=", "orders.py:") in failed.stdout


NOT_NIGHTLY = {
    "venv",
    "help",
    "nightly",
    "clean",
    "picture",  # a part of docs
    "release",  # of a version, by a person
    "test-new-pythons",
    "test-arm64",
    "bench-pythons",  # in a separate system, as root
}


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "--silent", "--no-print-directory", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_nightly_runs_every_target_that_needs_no_person() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):.*##", makefile, re.MULTILINE))
    nightly = re.search(r"^NIGHTLY := ((?:.*\\\n)*.*)", makefile, re.MULTILINE)
    assert nightly
    assert set(nightly[1].replace("\\", " ").split()) == targets - NOT_NIGHTLY
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert {"run": "make nightly"} in workflow["jobs"]["nightly"]["steps"]


def test_nightly_goes_on_after_a_failure(tmp_path: Path) -> None:
    """Each target has one line, and the failures are listed at the end."""
    done = make("nightly", "NIGHTLY=no-target help", f"NIGHTLY_LOGS={tmp_path}")
    assert done.returncode == 2
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[:2] for line in lines[:2]] == [["no-target", "FAILED"], ["help", "ok"]]
    assert lines[2][:2] == ["failed:", "no-target;"]
    assert "No rule to make target" in (tmp_path / "no-target.log").read_text()
    assert "test-anywhere" in (tmp_path / "help.log").read_text()
    assert make("nightly", "NIGHTLY=help", f"NIGHTLY_LOGS={tmp_path}").returncode == 0


def test_each_package_of_the_tests_is_pinned() -> None:
    """An unpinned package would be missing silently, and its tests skipped."""
    lines = (ROOT / "tests" / "packages.txt").read_text().splitlines()
    needed = {name for line in lines if not line.startswith("#") for name in line.split()}
    pinned = (ROOT / "requirements-dev.txt").read_text().splitlines()
    assert needed <= {line.partition("==")[0] for line in pinned if "==" in line}
