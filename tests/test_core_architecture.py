"""The rules of the core's architecture. This test enforces them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_architecture import ROOT

pytestmark = pytest.mark.once


CORE = ROOT / "queryprof" / "core"


FOLDERS = (
    "runtime",
    "wrappers",
    "sql",
    "memory",
    "threads",
    "sharing",
    "stacks",
    "sqlite",
    "statements",
    "sums",
    "lines",
    "loops",
    "context",
    "counters",
    "calls",
    "attach",
    "recording",
    "binding",
)
"""The folders of the core. Each includes only headers of earlier folders and its own, as
docs/architecture.md draws them.
"""


def included(path: Path) -> set[str]:
    """Return the core's headers that a file includes, without its own, as paths without
    a suffix.
    """
    found = re.findall(r'^ *#include "([\w/]+)\.h"', path.read_text(), flags=re.MULTILINE)
    return set(found) - {str(path.relative_to(CORE).with_suffix(""))}


def test_headers_are_included_by_their_path_in_the_core() -> None:
    """An include like "../calls/probe.h" would escape the folder-order test."""
    for path in CORE.rglob("*.[ch]"):
        named = re.findall(r'^ *# *include +"([^"]*)"', path.read_text(), flags=re.MULTILINE)
        assert all(
            re.fullmatch(r"\w+/\w+\.h", name) and (CORE / name).exists() for name in named
        ), path


def test_what_a_header_declares_its_folder_defines() -> None:
    """An `extern` elsewhere would escape the order of the folders."""
    for path in CORE.rglob("*.[ch]"):
        declared = re.findall(r"^ *extern\b([^;{]*)", path.read_text(), flags=re.MULTILINE)
        if declared and path.suffix == ".c":
            assert not declared, path
        source = "".join(one.read_text() for one in path.parent.glob("*.c") if declared)
        for one in declared:
            name = re.findall(r"\w+", one.partition("[")[0])[-1]
            assert re.search(rf"^[^ /#].*\b{name}\b *(\[|=|;)", source, flags=re.MULTILINE), (
                path,
                name,
            )


def test_folders_of_the_core_have_an_order() -> None:
    assert {path.parent.name for path in CORE.rglob("*.[ch]")} == set(FOLDERS)
    for path in CORE.rglob("*.[ch]"):
        below = FOLDERS[: FOLDERS.index(path.parent.name) + 1]
        assert {name.partition("/")[0] for name in included(path)} <= set(below), path


def test_the_page_on_architecture_is_true() -> None:
    """It draws the folders in their order, and the files that it names exist."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    assert re.findall(r"^\| `(\w+)/` \|", page, flags=re.MULTILINE) == list(FOLDERS)
    places = [ROOT, CORE, ROOT / "queryprof"]
    for name in re.findall(r"`((?:\w+/)+[\w.-]*)`", page):
        assert any((place / name).exists() for place in places), name


def test_files_of_the_core_have_no_cycle() -> None:
    """A header and its .c file count as one."""
    left: dict[str, set[str]] = {}
    for path in CORE.rglob("*.[ch]"):
        left.setdefault(str(path.relative_to(CORE).with_suffix("")), set()).update(included(path))
    while left:
        free = {name for name, needs in left.items() if not needs & set(left)}
        assert free, f"a cycle among {sorted(left)}"
        left = {name: needs for name, needs in left.items() if name not in free}
