"""Sessions of checks, each in an environment of its own: `nox --list`, or through `make`."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
from pathlib import Path

import nox

VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
PINNED = Path("requirements-dev.txt").read_text().splitlines()
TESTS, ONCE = (
    [name for line in part.splitlines() if not line.startswith("#") for name in line.split()]
    for part in Path("tests/packages.txt").read_text().split("\n\n")
)
"""What the tests need, and what those need that run on the first Python alone."""

FEWER_EXAMPLES = "100"
"""Random programs where the first Python has run 200."""

nox.options.reuse_existing_virtualenvs = True
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_missing_interpreters = True


def pinned(*names: str) -> list[str]:
    """The pinned requirements of these names."""
    return [line for line in PINNED if line.partition("==")[0] in names]


def interpreters() -> list[str]:
    """The Pythons of VERSIONS that are here: on the PATH, or among pyenv's."""
    found = []
    for version in VERSIONS:
        candidates = [shutil.which(f"python{version}") or ""]
        root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
        candidates += sorted(glob.glob(f"{root}/versions/{version}.*/bin/python{version}"))
        working = [c for c in candidates if c and _is_python(c, version)]
        found += working[-1:]
    if not found:
        raise SystemExit(f"none of Python {', '.join(VERSIONS)} is here")
    return found


def _is_python(path: str, version: str) -> bool:
    code = f"import sys, sqlite3; sys.exit(sys.version_info[:2] != {tuple(map(int, version.split('.')))})"
    return subprocess.run([path, "-c", code], capture_output=True, check=False).returncode == 0


PYTHONS = interpreters()


def install(session: nox.Session, *names: str, flags: str = "") -> None:
    """Installs the package as a wheel, and tools by name."""
    session.install("click>=8.1", "plotille>=5.0", "psutil>=5.9", "rich>=13.7", *pinned(*names))
    shutil.rmtree("build", ignore_errors=True)  # a stale one would ship deleted modules
    session.install("--no-deps", "--force-reinstall", ".", env={"QUERYPROF_CFLAGS": flags})
    shutil.rmtree("build", ignore_errors=True)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """All tests, against the installed wheel; the core is compiled with warnings as errors."""
    is_first = session.python == PYTHONS[0]
    packages = (*TESTS, *ONCE) if is_first else TESTS
    install(session, *packages, flags="" if os.name == "nt" else "-Werror")
    examples = "200" if is_first else FEWER_EXAMPLES
    session.run(
        "pytest", "-q", "-n", "3", "--dist", "worksteal", "-m", "not compat" if is_first else "not compat and not once",
        *session.posargs,
        env={"QUERYPROF_EXAMPLES": examples},
    )  # fmt: skip


@nox.session(python=PYTHONS[0])
def compat(session: nox.Session) -> None:
    """Other programs' own test suites, bare and under queryprof."""
    install(session, *TESTS)
    session.run("pytest", "-q", "-m", "compat", *session.posargs)


@nox.session(python=PYTHONS[0])
def types(session: nox.Session) -> None:
    """Mypy --strict, on the installed package: it cannot follow package_dir in the checkout."""
    install(session, "mypy", "pytest")
    session.chdir("tests")
    session.run("mypy", "--strict", "-p", "queryprof")


@nox.session(python=PYTHONS[0])
def sanitize(session: nox.Session) -> None:
    """The core's tests under ASan and UBSan, with allocations that fail."""
    flags = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-lto -g -O1"
    install(session, *TESTS, flags=f"{flags} -DQP_FAULT_INJECTION")
    preload = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    session.run(
        "pytest", "-q", "-p", "no:cacheprovider", "-m", "not compat",
        # DuckDB's C++ exceptions abort where libasan is loaded before libstdc++.
        "--deselect", "tests/attach/test_drivers.py::test_duckdb",
        "tests/attach", "tests/record", *session.posargs,
        env={
            "LD_PRELOAD": preload,
            # CPython keeps what it interned to the end: its leaks would hide ours.
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
            "PYTHONMALLOC": "malloc",
            "QUERYPROF_EXAMPLES": FEWER_EXAMPLES,
            "QUERYPROF_LONG_PROGRAMS": "1",
        },
    )  # fmt: skip
