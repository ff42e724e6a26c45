"""The documentation: every command in it runs, and it contains every command of queryprof."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import click
import pytest
from testing.django_project import FILES as PROJECT

from queryprof.cli.main import cli
from queryprof.findings.finding import CATEGORIES, SERVER_CATEGORIES
from queryprof.fleet.schema import FLEET_TABLES, INTEGER, REAL, SCHEMA
from queryprof.trace.tables import TABLES

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LONG = {
    "agents.md",
    "drivers.md",
    "findings.md",
    "fleet.md",
    "loops.md",
    "pictures.md",
    "production.md",
    "proving.md",
    "start.md",
    "testing.md",
    "using.md",
}
"""Pages whose commands take long: `make test-slow` runs them."""

OWN_TARGETS = {"make demo"}
"""Continuous integration runs it as a target. Here it would run this test again."""

ACTIVATE = ". .venv-demo/bin/activate"
"""Activates the environment that `make demo` creates."""


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a language, also those in tabs, which are indented."""
    found = re.finditer(
        rf"^( *)```{language}\n(.*?)^\1```", page.read_text(), re.MULTILINE | re.DOTALL
    )
    return [textwrap.dedent(block[2]) for block in found]


def commands(page: Path) -> list[str]:
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    return [line[2:] for line in lines if line.startswith("$ ")]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=[pytest.mark.slow] if page.name in LONG else [])
        for page in PAGES
    ],
)
def test_every_command_shown_runs(page: Path, tmp_path: Path) -> None:
    """The commands run in order, in a copy of the example's directory, with this Python first on
    the PATH.
    """
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    environment = {
        **os.environ,
        "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"],
        "NO_COLOR": "1",
    }
    for command in commands(page):
        if command == ACTIVATE:
            assert f"-m venv {ACTIVATE.partition('/')[0][2:]}" in (ROOT / "Makefile").read_text()
            continue
        if command in OWN_TARGETS:
            assert re.search(
                rf"^{command.split()[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE
            )
            continue
        result = subprocess.run(
            command, shell=True, capture_output=True, text=True, env=environment, check=False
        )
        assert result.returncode == 0, f"{command}\n{result.stderr}"
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "findings.md"], ids=lambda page: page.name
)
def test_every_program_shown_runs(page: Path) -> None:
    """Python blocks are complete programs. Those on findings have their own test."""
    for block in blocks(page, "python"):
        result = subprocess.run(
            [sys.executable, "-c", block], capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr


def test_the_wsgi_module_shown_works_in_a_project(tmp_path: Path) -> None:
    """It runs in a project of Django, with settings from the environment."""
    pytest.importorskip("django")
    for name, text in PROJECT.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.lstrip())
    (module,) = blocks(ROOT / "docs" / "web.md", 'python title="wsgi.py"')
    (tmp_path / "wsgi.py").write_text(module)
    record = "import queryprof; queryprof.install('x.qprof')"
    request = "from wsgi import application; from django.test import RequestFactory as F"
    answer = "print(application(F().get('/nowhere/').environ, lambda *a, **k: print(a[0], a[1])))"
    result = subprocess.run(
        [sys.executable, "-c", f"{record}; {request}; {answer}"],
        capture_output=True,
        text=True,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "site_settings"},
        cwd=tmp_path,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "404 Not Found" in result.stdout
    assert "Server-Timing" in result.stdout


def test_the_page_on_findings_has_the_tested_programs() -> None:
    """`make docs` writes it."""
    page = (ROOT / "docs" / "findings.md").read_text()
    folder = ROOT / "tests" / "programs" / "findings"
    of_servers = (ROOT / "docs" / "postgresql.md").read_text()
    assert all(f"| `{category}` |" in of_servers for category in SERVER_CATEGORIES)
    for category in CATEGORIES.keys() - SERVER_CATEGORIES:
        program = (folder / f"{category}.py").read_text().replace("  # culprit", "")
        assert f"## `{category}`\n" in page
        assert f"```python\n{program}```" in page


def test_every_command_and_option_is_documented() -> None:
    """Nobody would know a command or option that is on no page."""
    text = "\n".join(page.read_text() for page in PAGES)
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        assert f"queryprof {name}" in text
        for parameter in command.params:
            is_hidden = getattr(parameter, "hidden", False)
            if parameter.param_type_name == "option" and parameter.name != "help" and not is_hidden:
                assert any(option in text for option in parameter.opts), f"{name} {parameter.opts}"


INTERNAL = {"QUERYPROF_FIRST_PID", "QUERYPROF_RUNNER", "QUERYPROF_WORKLOAD"}
"""Variables that a command passes to the processes that it starts."""


def test_every_variable_is_documented() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    folders = [ROOT / name for name in ("queryprof", "cli", "hooks")]
    sources = [path.read_text() for folder in folders for path in folder.rglob("*.py")]
    names = {name for one in sources for name in re.findall(r"\bQUERYPROF_[A-Z_]*[A-Z]\b", one)}
    assert INTERNAL <= names
    assert {name for name in names - INTERNAL if f"`{name}" not in text} == set()


def test_the_page_on_the_trace_has_every_table() -> None:
    text = (ROOT / "docs" / "trace.md").read_text()
    assert not [table.name for table in TABLES if f"`{table.name}`" not in text]


def test_the_page_on_a_fleet_has_every_table() -> None:
    text = (ROOT / "docs" / "fleet.md").read_text()
    assert f"Version {SCHEMA} of the schema" in text
    for table in FLEET_TABLES:
        (line,) = [one for one in text.splitlines() if one.startswith(f"| `{table.name}` |")]
        own = [one.name for one in table.columns if one.kind not in (INTEGER, REAL)]
        missing = [name for name in own if f"`{name}`" not in line + shared(text)]
        assert not missing


def shared(text: str) -> str:
    return next(line for line in text.splitlines() if line.startswith("| all |"))


def test_the_page_on_commands_is_what_they_print() -> None:
    """`python docs/commands_page.py` writes it."""
    spec = importlib.util.spec_from_file_location("page", ROOT / "docs" / "commands_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (ROOT / "docs" / "commands.md").read_text()
    # Click's own words differ between its versions.
    assert written.split() == module.page().split()


def test_every_page_has_a_place_in_the_site() -> None:
    """Every page in the site's navigation exists."""
    named = set(re.findall(r": ([a-z-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert named == {page.name for page in (ROOT / "docs").glob("*.md")}


def test_the_readme_is_read_in_a_minute() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 70


def test_every_target_is_in_the_makefile() -> None:
    """Every chore in CONTRIBUTING.md exists."""
    targets = set(re.findall(r"`make ([a-z0-9.-]+)", (ROOT / "CONTRIBUTING.md").read_text()))
    makefile = (ROOT / "Makefile").read_text()
    assert targets
    assert all(re.search(rf"^{re.escape(t)}:", makefile, re.MULTILINE) for t in targets)


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def test_links_lead_somewhere() -> None:
    """Relative links in the pages point to files and headings."""
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]:
        for link, heading in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text()):
            if not link.startswith("http"):
                target = page.parent / link if link else page
                assert target.exists(), f"{page.name}: {link}"
                assert not heading or heading in anchors(target), f"{page.name}: {link}#{heading}"
