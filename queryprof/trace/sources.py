"""The program's source, where it is still there: the loop that a line is in, the lines around it."""

from __future__ import annotations

import ast
import os
import stat
import tokenize
import warnings
from functools import cache

from queryprof.model import Frame

LARGEST_BYTES = 2_000_000
AROUND = 3
LONGEST_LINE = 200
LOOPS = (
    ast.For,
    ast.AsyncFor,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.While,
)


def loop_at(frame: Frame) -> Frame | None:
    """The innermost loop around a frame's line in its function, as a frame of its line; None: there
    is none, it never ends by itself (`while True`), or the source is not there.
    """
    found: ast.AST | None = None
    for node, first, last in _loops(frame.file):
        if first <= frame.line <= last and (found is None or first > _line(found)):
            found = node
    inside = found is not None and _function_at(frame.file, _line(found)) == _function_at(
        frame.file, frame.line
    )
    if found is None or not inside:
        return None
    return Frame(frame.function, frame.file, _line(found), frame.kind)


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def lines_around(frame: Frame, unchanged_since_unix_ns: int) -> list[tuple[int, str]] | None:
    """The lines around a frame's line, each with its number; None: the source is not there, or has
    changed since.
    """
    text, changed_unix_ns = _source(frame.file)
    if not frame.line or text is None or changed_unix_ns > unchanged_since_unix_ns:
        return None
    lines = text.splitlines()
    first, last = max(1, frame.line - AROUND), min(len(lines), frame.line + AROUND)
    return [(number, lines[number - 1][:LONGEST_LINE]) for number in range(first, last + 1)] or None


@cache
def _source(file: str) -> tuple[str | None, int]:
    """A file's text, and when it was last changed; None: it is no source that can be read."""
    try:
        facts = os.stat(file)  # a trace may name any file
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST_BYTES:
            return None, 0
        with tokenize.open(file) as source:
            return source.read(), facts.st_mtime_ns
    except (OSError, SyntaxError, ValueError):
        return None, 0


@cache
def _tree(file: str) -> ast.Module | None:
    text, _ = _source(file)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the program's own: an invalid escape, for instance
            return ast.parse(text) if text is not None else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@cache
def _loops(file: str) -> tuple[tuple[ast.AST, int, int], ...]:
    """The loops of a file with the lines of what runs again and again in them."""
    tree = _tree(file)
    found = []
    for node in ast.walk(tree) if tree else ():
        if not isinstance(node, LOOPS):
            continue
        if isinstance(node, ast.While) and isinstance(node.test, ast.Constant):
            continue
        first, last = node.lineno, node.end_lineno
        if isinstance(node, ast.For | ast.AsyncFor):  # what it iterates over runs once
            first, last = node.body[0].lineno, node.body[-1].end_lineno
        found.append((node, first, last or first))
    return tuple(found)


@cache
def _functions(file: str) -> tuple[tuple[int, int], ...]:
    tree = _tree(file)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return tuple(
        (node.lineno, node.end_lineno or node.lineno)
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, kinds)
    )


def _function_at(file: str, line: int) -> tuple[int, int] | None:
    """The innermost function around a line."""
    around = [lines for lines in _functions(file) if lines[0] <= line <= lines[1]]
    return max(around, default=None)
