"""The rules of the architecture. This test enforces them."""

from __future__ import annotations

import ast
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from may_import import MAY_IMPORT

import queryprof

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent
PACKAGES = {
    "queryprof": ROOT / "queryprof",
    "queryprof.hooks": ROOT / "hooks",
    "queryprof.cli": ROOT / "cli",
}

"""A stage imports only earlier stages."""


def modules() -> dict[str, Path]:
    found = {}
    for package, directory in PACKAGES.items():
        for path in directory.rglob("*.py"):
            parts = list(path.relative_to(directory).with_suffix("").parts)
            if parts[-1] == "__init__":
                parts.pop()
            found[".".join([package, *parts])] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports(path: Path, for_types: bool = True) -> frozenset[str]:
    """Return the names a module imports anywhere; with `for_types`, those of types as well."""
    names: set[str] = set()
    nodes: list[ast.AST] = [tree(path)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not for_types:
            continue
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            nodes += getattr(node, block, ())
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            module = node.module or ""
            names |= {
                f"{module}.{alias.name}" if f"{module}.{alias.name}" in MODULES else module
                for alias in node.names
            }
    return frozenset(names)


MODULES = modules()


def called(node: ast.AST) -> str:
    """Return the last name of the called function, or "" if the node is no call."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


IMPORTED_BY_NAME = {
    "queryprof": {"module"},  # its own public names
    "queryprof.cli.group": {"f'queryprof.cli.{module}'"},
    "queryprof.cli.report": {"module"},
    "queryprof.cli.doctor": {"name"},  # a library's
    "queryprof.cli.scenario_worker": {"module"},  # the user's
    "queryprof.hooks.libraries": {"f'queryprof.hooks.{home}'"},
    "queryprof.report.json.schema": {"DOCUMENTS[name]"},
}
"""The imports with a computed name. The other rules cannot see such imports, so no others are
allowed.
"""


def test_no_import_is_hidden_in_a_name() -> None:
    """The other rules cannot see import_module(f"queryprof.{name}")."""
    for name, path in MODULES.items():
        found = {
            ast.unparse(argument)
            for node in (ast.walk(tree(path)) if "import_" in path.read_text() else ())
            if called(node) in ("import_module", "__import__")
            for argument in node.args[:1]  # type: ignore[attr-defined]
        }
        assert found == IMPORTED_BY_NAME.get(name, set()), name


ABOVE = (
    "queryprof.agent",
    "queryprof.analysis",
    "queryprof.cli",
    "queryprof.comparing",
    "queryprof.findings",
    "queryprof.fleet",
    "queryprof.notebook",
    "queryprof.planner",
    "queryprof.proof",
    "queryprof.replay",
    "queryprof.report",
    "queryprof.servers",
    "queryprof.statistics",
    "queryprof.telemetry",
    "queryprof.testing",
    "queryprof.pytest_plugin",
)
"""Modules that no profiled process imports, except pytest's."""


def test_no_library_enters_the_profiled_process() -> None:
    for name, path in MODULES.items():
        if not inside(name, set(ABOVE)):
            tops = {one.partition(".")[0] for one in imports(path, for_types=False)}
            assert tops <= {"queryprof", *sys.stdlib_module_names}, name


def inside(name: str, packages: set[str]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def inside_any(names: set[str], packages: set[str]) -> bool:
    return any(inside(name, packages) for name in names)


def test_imports_follow_the_data_backwards() -> None:
    """A stage imports the stages before it, itself and the model; none imports cli."""
    for name, path in MODULES.items():
        own = {n for n in imports(path) if inside(n, {"queryprof"})}
        if name == "queryprof":
            assert not {n for n in own if inside(n, {"queryprof.cli"})}
        elif not inside(name, {"queryprof.cli"}):
            assert "queryprof" not in own, f"{name} imports the package itself"
            stage = max((s for s in MAY_IMPORT if inside(name, {s})), key=len)
            assert not {n for n in own if not inside(n, MAY_IMPORT[stage] | {stage})}, name


def test_imports_have_no_cycle() -> None:
    """Including imports inside functions, the modules can be put in an order."""
    left = {
        name: imports(path, for_types=False) & set(MODULES) - {name}
        for name, path in MODULES.items()
    }
    while left:
        free = {name for name, needs in left.items() if not needs & set(left)}
        assert free, f"a cycle among {sorted(left)}"
        left = {name: needs for name, needs in left.items() if name not in free}


def test_folders_have_no_cycle() -> None:
    """The folders can be put in an order as well."""

    def folder(name: str) -> str:
        return ".".join(name.split(".")[:2])

    left: dict[str, set[str]] = {}
    for name, path in MODULES.items():
        if name != "queryprof":
            needs = {folder(one) for one in imports(path, for_types=False) & set(MODULES)}
            left.setdefault(folder(name), set()).update(needs - {folder(name), "queryprof"})
    while left:
        free = {name for name, needs in left.items() if not needs & set(left)}
        assert free, f"a cycle among {sorted(left)}"
        left = {name: needs for name, needs in left.items() if name not in free}


def test_click_and_rich_stay_where_people_are() -> None:
    """Only the command line uses click; only it and terminal output use rich."""
    for name, path in MODULES.items():
        tops = {n.partition(".")[0] for n in imports(path)}
        if not inside(name, {"queryprof.cli"}):
            assert "click" not in tops, name
            assert "rich" not in tops or inside(name, {"queryprof.report.terminal"}), name


def test_texts_for_a_terminal_are_made_in_one_place() -> None:
    """Rich's own Text and Table parse markup and pass control characters on."""
    for name, path in MODULES.items():
        if name != "queryprof.report.terminal.console":
            assert not inside_any(imports(path), {"rich.text", "rich.table", "rich.markup"}), name


def test_traces_are_read_in_one_place() -> None:
    """All code that computes with a trace's rows gets checked rows."""
    for name in ("collect.reader", "collect.merge", "trace.loader"):
        source = MODULES[f"queryprof.{name}"].read_text()
        assert "SELECT" not in source, name


def test_no_module_is_named_as_another_library() -> None:
    """hooks/sqlite3.py would shadow the library that it attaches to."""
    names = {name.rpartition(".")[2] for name in MODULES if inside(name, {"queryprof.hooks"})}
    libraries = set(sys.stdlib_module_names) | {"apsw", "aiosqlite", "django", "pytest"}
    assert not names & libraries - {"queryprof"}


def test_files_are_one_idea() -> None:
    """No source file is longer than 400 lines."""
    folders = [
        ROOT / name
        for name in ("queryprof", "hooks", "cli", "tests", "benchmarks", "docs", "examples")
    ]
    kinds = {".py", ".pyi", ".c", ".h", ".js", ".css"}
    written = [path for folder in folders for path in folder.rglob("*") if path.suffix in kinds]
    sources = [*written, *ROOT.glob("*.py")]
    assert {path.suffix for path in sources} == kinds
    lengths = {str(path): len(path.read_text().splitlines()) for path in sources}
    assert not {path: length for path, length in lengths.items() if length > 400}


def test_public_names() -> None:
    """The exported names are the intended ones, and each has a docstring."""
    assert sorted(queryprof.__all__) == [
        "AsgiMiddleware",
        "Badge",
        "QueryprofError",
        "Recording",
        "SessionError",
        "SettingsError",
        "TestCase",
        "TraceError",
        "WsgiMiddleware",
        "__version__",
        "at_most",
        "check_growth",
        "install",
        "instrument",
        "is_installed",
        "loop_lag",
        "profile",
        "span",
        "uninstall",
    ]
    for name in queryprof.__all__:
        assert name == "__version__" or getattr(queryprof, name).__doc__


def test_all_packages_are_installed() -> None:
    """A sub-package that setup.cfg forgets would be missing from the wheel."""
    listed = (ROOT / "setup.cfg").read_text().split("packages =")[1].split("package_dir")[0].split()
    packages = {name for name, path in MODULES.items() if path.name == "__init__.py"}
    assert packages == set(listed)
    assert all(find_spec(name) for name in packages)


OF_SEVERAL_ROOMS = {"golden", "programs", "states", "strangers", "vfs"}


def test_tests_are_in_the_room_of_what_they_test() -> None:
    rooms = {path.name for path in (ROOT / "queryprof").iterdir() if path.is_dir()}
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/*.py")}
    assert folders <= rooms | OF_SEVERAL_ROOMS | {"cli", "hooks"}


OUTSIDE = sorted(
    path for folder in ("examples", "benchmarks", "docs") for path in (ROOT / folder).rglob("*.py")
)


def test_what_examples_and_benchmarks_import_is_there() -> None:
    """No other test would notice, since people run them by hand."""
    for path in OUTSIDE:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("queryprof"):
                module = import_module(node.module or "")
                for alias in node.names:
                    name = f"{node.module}.{alias.name}"
                    assert hasattr(module, alias.name) or name in MODULES, name
