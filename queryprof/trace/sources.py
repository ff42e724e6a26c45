"""The program's source, where it is still what the recording saw: the loop that a line is in, the lines
around it. A trace may name any file: one is read only if its content has the hash that is in the trace.
"""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256

from queryprof.model import ENDLESS, Frame
from queryprof.trace.source_facts import source_of

NO_HASHES: frozenset[str] = frozenset()
AROUND = 3
LONGEST_LINE = 200
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While, *COMPREHENSIONS)


@dataclass(frozen=True, slots=True)
class Sources:
    """Source files by their hashes: see `Profile.sources`."""

    hashes: Mapping[str, Collection[str]]

    def loop_at(self, frame: Frame) -> Frame | None:
        """The innermost loop around a frame's line in its function, as a frame of its line; None: there
        is none, or the source is not there; ENDLESS: it is a `while True` that nothing in it ends, or
        that of a coroutine, which waits for work.
        """
        text = self._text(frame.file)
        found: ast.AST | None = None
        for node, first, last in _loops(text):
            if isinstance(node, ast.GeneratorExp) and not frame.function.endswith("<genexpr>"):
                continue  # it has a frame of its own
            if first <= frame.line <= last and (found is None or first > _line(found)):
                found = node
        inside = found is not None and _function_at(text, _line(found)) == _function_at(
            text, frame.line
        )
        if found is None or not inside:
            return None
        if isinstance(found, ast.While) and isinstance(found.test, ast.Constant):
            return ENDLESS
        return Frame(frame.function, frame.file, _line(found), frame.kind)

    def lines_around(self, frame: Frame) -> list[tuple[int, str]] | None:
        """The lines around a frame's line, each with its number; None: the source is not there, or
        is another one.
        """
        lines = self._text(frame.file).splitlines()
        first, last = max(1, frame.line - AROUND), min(len(lines), frame.line + AROUND)
        if not frame.line:
            return None
        return [
            (number, lines[number - 1][:LONGEST_LINE]) for number in range(first, last + 1)
        ] or None

    def _text(self, file: str) -> str:
        """Empty: it is not there, or not what was recorded."""
        hashes = self.hashes.get(file, NO_HASHES)
        text, digest = _source(file) if hashes else ("", "")
        return text if digest in hashes else ""


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


@cache
def _source(file: str) -> tuple[str, str]:
    """A file's text and its hash; empty: it is no source that can be read."""
    found = source_of(file)
    if found is None:
        return "", ""
    content = found[0]
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
    except (SyntaxError, ValueError, LookupError):
        return "", ""
    return text, sha256(content, usedforsecurity=False).hexdigest()


@cache
def _tree(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the program's own: an invalid escape, for instance
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@cache
def _loops(text: str) -> tuple[tuple[ast.AST, int, int], ...]:
    """The loops of a source with the lines of what runs again and again in them."""
    tree = _tree(text)
    found = []
    for node in ast.walk(tree) if tree else ():
        if not isinstance(node, LOOPS):
            continue
        if isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and _ends(node):
            continue
        first, last = node.lineno, node.end_lineno
        if isinstance(node, ast.For | ast.AsyncFor):  # what it iterates over runs once
            first, last = node.body[0].lineno, node.body[-1].end_lineno
        if isinstance(node, COMPREHENSIONS) and not _calls_in(node):
            continue  # nor is what the first of its generators iterates over
        found.append((node, first, last or first))
    return tuple(found)


def _ends(loop: ast.While) -> bool:
    """Whether something in a `while True` ends it that does not wait: a coroutine's waits for work."""
    inside = [node for part in loop.body for node in ast.walk(part)]
    if any(isinstance(node, ast.Await) for node in inside):
        return False
    return any(isinstance(node, ast.Break | ast.Return) for node in inside)


def _calls_in(comprehension: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> bool:
    """Whether a comprehension calls anything for its items, or reads an attribute of an attribute, which an
    object mapper may load.
    """
    once = {id(node) for node in ast.walk(comprehension.generators[0].iter)}
    return any(
        isinstance(node, ast.Call | ast.Await)
        or (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute))
        for node in ast.walk(comprehension)
        if id(node) not in once
    )


@cache
def _functions(text: str) -> tuple[tuple[int, int], ...]:
    tree = _tree(text)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return tuple(
        (node.lineno, node.end_lineno or node.lineno)
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, kinds)
    )


def _function_at(text: str, line: int) -> tuple[int, int] | None:
    """The innermost function around a line."""
    around = [lines for lines in _functions(text) if lines[0] <= line <= lines[1]]
    return max(around, default=None)
