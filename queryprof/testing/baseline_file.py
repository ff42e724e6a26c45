"""The baseline of a test suite: a JSON file to be read in reviews and merged by git.

One line for each statement and each test, everything sorted, nothing that differs between
machines. It has the versions of SQLite, because VM steps may change with that, and of Python, whose
library executes statements, too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from queryprof.errors import BaselineError
from queryprof.given_file import content_of
from queryprof.testing.baseline_lines import Tests, lines_of, tests_of

FORMAT_VERSION = 2

MOST_VERSION = 40
"""Characters of the name of one, which is printed."""

MARK = b'"format_version"'
"""In every baseline, also in one with the marks of a merge conflict."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a baseline file holds.

    Attributes:
        python_version: as "3.12"; "": not known, in one of before.
    """

    sqlite_version: str
    tests: Tests
    python_version: str = ""


def read_baseline(path: str) -> Baseline:
    """Reads a baseline.

    Raises:
        BaselineError: there is none, or it is damaged, has merge conflict markers, or is newer.
    """
    try:
        _refuse_odd_file(path)
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError as error:
        raise BaselineError(
            f"{path}: there is no baseline yet; make one with --queryprof-save"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BaselineError(f"{path}: cannot be read: {error}") from error
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(("<<<<<<<", "=======", ">>>>>>>")):
            raise BaselineError(
                f"{path}:{number}: has the marks of a merge conflict; take either side, and run"
                " all tests with --queryprof-save"
            )
    try:
        document = json.loads(text, object_pairs_hook=_once)
        return _checked(path, document)
    except json.JSONDecodeError as error:
        raise BaselineError(
            f"{path}:{error.lineno}: is no JSON ({error.msg}); restore it, or {_again(text)}"
        ) from error
    except _TwiceError as error:
        raise BaselineError(
            f"{path}: {str(error)!r} is there twice, as after a merge; {_again(text)}"
        ) from error
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise BaselineError(f"{path}: is no baseline of queryprof; {_again(text)}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Raises _TwiceError."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _TwiceError(name)
        found[name] = value
    return found


class _TwiceError(ValueError):
    """A name is there twice: a merge leaves that."""


def _again(text: str) -> str:
    """How a baseline is saved in place of this text, which is none."""
    if MARK in text.encode("utf-8", "replace") or not text.strip():
        return "save it again with all tests: --queryprof-save"
    return "remove it and save one with all tests: --queryprof-save"


def _checked(path: str, document: Any) -> Baseline:
    version = document["format_version"]
    if version != FORMAT_VERSION:
        raise BaselineError(
            f"{path}: has format {version}, and this queryprof reads {FORMAT_VERSION};"
            " use the queryprof that wrote it, or write it again with --queryprof-save"
        )
    python = str(document.get("python_version", ""))[:MOST_VERSION]
    tests = tests_of(document["statements"], document["tests"])
    return Baseline(str(document["sqlite_version"])[:MOST_VERSION], tests, python)


def _refuse_odd_file(path: str) -> None:
    """Raises BaselineError for a device, a pipe or a directory."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise BaselineError(f"{path}: is not a regular file; choose another name")


def _refuse_other_file(path: str) -> None:
    """Raises BaselineError when a file is there that is no baseline, not even a damaged one."""
    try:
        content = content_of(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise BaselineError(f"{path}: cannot be read: {error.strerror or error}") from error
    if content.strip() and MARK not in content:
        raise BaselineError(f"{path}: is there, and no baseline; choose another name")


def _pieces(baseline: Baseline) -> Iterator[str]:
    """The JSON document: one line for each statement and each test."""
    statements, lines = lines_of(baseline.tests)
    yield f'{{\n "format_version": {FORMAT_VERSION},\n'
    yield f' "python_version": {_json(baseline.python_version)},\n'
    yield f' "sqlite_version": {_json(baseline.sqlite_version)},\n'
    yield f' "statements": {_object(statements)},\n'
    yield f' "tests": {_object(lines)}\n}}\n'


def _object(members: Mapping[str, Any]) -> str:
    lines = ",".join(f"\n  {_json(name)}: {_json(value)}" for name, value in members.items())
    return f"{{{lines}\n }}" if lines else "{}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def write_baseline(path: str, baseline: Baseline) -> None:
    """Writes a baseline, whole or not at all; through a symbolic link.

    Raises:
        BaselineError: it cannot be written.
    """
    text = "".join(_pieces(baseline))
    _refuse_odd_file(path)
    _refuse_other_file(path)
    target = os.path.realpath(path)
    beside = f"{target}.{os.getpid()}.tmp"
    try:
        # A lone surrogate, which UTF-8 cannot hold, becomes its JSON escape.
        with open(beside, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(text)
        os.replace(beside, target)
    except OSError as error:
        if os.path.exists(beside):
            os.unlink(beside)
        raise BaselineError(f"{path}: cannot be written: {error.strerror}") from error
