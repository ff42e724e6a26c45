"""The program's source, where it is still there: the loop that a line is in."""

from __future__ import annotations

import ast
import os
import stat
import tokenize
import warnings
from functools import cache

from queryprof.model import Frame

LARGEST_BYTES = 2_000_000
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


@cache
def _tree(file: str) -> ast.Module | None:
    try:
        facts = os.stat(file)  # a trace may name any file
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST_BYTES:
            return None
        with tokenize.open(file) as source, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the program's own: an invalid escape, for instance
            return ast.parse(source.read())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
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
