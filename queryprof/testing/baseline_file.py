"""The baseline of a test suite: a JSON file made for code review and for merging with git.

It has one line per statement and test, is sorted, and contains nothing that differs between
machines. It names the version of SQLite, which may change VM steps, and the version of Python,
whose standard library also executes statements.
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

MAX_VERSION_CHARACTERS = 40
"""Length limit of a version, which is printed."""

MARK = b'"format_version"'
"""A text in every baseline, even in a baseline with merge conflict markers."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The content of a baseline file.

    Attributes:
        python_version: like "3.12".
    """

    sqlite_version: str
    python_version: str
    tests: Tests


def read_baseline(path: str) -> Baseline:
    """Read a baseline.

    Raises:
        BaselineError: the file is missing, damaged, has merge conflict markers, or has another
            format version.
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
                f"{path}:{number}: has merge conflict markers; keep either side, and run"
                " all tests with --queryprof-save"
            )
    try:
        document = json.loads(text, object_pairs_hook=_without_duplicates)
        return _check_document(path, document)
    except json.JSONDecodeError as error:
        raise BaselineError(
            f"{path}:{error.lineno}: not valid JSON ({error.msg}); restore it,"
            f" or {_how_to_save(text)}"
        ) from error
    except _TwiceError as error:
        raise BaselineError(
            f"{path}: {str(error)!r} occurs twice (after a merge?); {_how_to_save(text)}"
        ) from error
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise BaselineError(f"{path}: not a queryprof baseline; {_how_to_save(text)}") from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dict. Raises _TwiceError."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _TwiceError(name)
        found[name] = value
    return found


class _TwiceError(ValueError):
    """A key occurs twice, as after a merge."""


def _how_to_save(text: str) -> str:
    """Return how to save a new baseline in place of this invalid text."""
    if MARK in text.encode("utf-8", "replace") or not text.strip():
        return "write it again: run all tests with --queryprof-save"
    return "remove it, and run all tests with --queryprof-save"


def _check_document(path: str, document: Any) -> Baseline:
    version = document["format_version"]
    if version != FORMAT_VERSION:
        raise BaselineError(
            f"{path}: has format {version}, but this queryprof reads format"
            f" {FORMAT_VERSION}; use the queryprof version that wrote the file, or write it again"
            " with --queryprof-save"
        )
    sqlite, python = (
        str(document[name])[:MAX_VERSION_CHARACTERS]
        for name in ("sqlite_version", "python_version")
    )
    return Baseline(sqlite, python, tests_of(document["statements"], document["tests"]))


def _refuse_odd_file(path: str) -> None:
    """Raise BaselineError for a device, a pipe or a directory."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise BaselineError(f"{path}: is not a regular file; choose another name")


def _refuse_other_file(path: str) -> None:
    """Raise BaselineError if the file is neither a baseline nor a damaged one."""
    try:
        content = content_of(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise BaselineError(f"{path}: cannot be read: {error.strerror or error}") from error
    if content.strip() and MARK not in content:
        raise BaselineError(f"{path}: exists and is not a baseline; choose another name")


def _json_pieces(baseline: Baseline) -> Iterator[str]:
    """Yield the JSON document, with one line per statement and test."""
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
    """Write a baseline, completely or not at all. Follows a symbolic link.

    Raises:
        BaselineError: the file cannot be written.
    """
    text = "".join(_json_pieces(baseline))
    _refuse_odd_file(path)
    _refuse_other_file(path)
    target = os.path.realpath(path)
    beside = f"{target}.{os.getpid()}.tmp"
    try:
        # UTF-8 cannot hold a lone surrogate, so it becomes a JSON escape.
        with open(beside, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(text)
        os.replace(beside, target)
    except OSError as error:
        if os.path.exists(beside):
            os.unlink(beside)
        raise BaselineError(f"{path}: cannot be written: {error.strerror}") from error
