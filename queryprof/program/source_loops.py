"""The loops of a program's source: what runs again and again in them."""

from __future__ import annotations

import ast
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from queryprof.model import ENDLESS, Frame

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While, *COMPREHENSIONS)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

FRAMES_OF_ITEMS = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")
"""How functions are called that compute the items of a comprehension, where it has one: up to
CPython 3.11 (PEP 709), generator expressions always."""

EXECUTES = frozenset({"execute", "executemany", "execute_fetchall", "fetchone", "fetchall"})
"""Methods of drivers (PEP 249, aiosqlite)."""

WAITS = frozenset({"sleep", "wait", "accept", "recv", "select", "poll"})
"""Methods that wait for work or for time; `get()` without an argument is a queue's."""


MAKES_TASKS = frozenset(
    {
        "gather",
        "create_task",
        "ensure_future",
        "start_soon",
        "as_completed",
        "run_coroutine_threadsafe",
    }
)
"""Functions and methods of asyncio, anyio and trio after which something runs beside the caller."""


def makes_tasks(text: str, line: int) -> bool:
    """Whether a line names a function that makes tasks."""
    return not MAKES_TASKS.isdisjoint(_mentions(text).get(line, ()))


def loop_in(text: str, frame: Frame, called: str) -> Frame | None:
    """The innermost loop around a frame's call in its function, as a frame of its line; None: there
    is none; ENDLESS: it is a `while True` that nothing in it ends, or one that waits for work.

    Args:
        called: the function that the frame has called; "": a driver's.
    """
    names = frozenset({called}) if called else EXECUTES
    elsewhere = _mentions(text).get(frame.line, Counter())
    inside = [node for node in _loops(text) if _runs_again(node, frame, names, elsewhere)]
    found = max(inside, key=lambda node: node.lineno, default=None)
    if found is None or _function_at(text, found.lineno) != _function_at(text, frame.line):
        return None
    if isinstance(found, ast.While) and isinstance(found.test, ast.Constant) and _is_endless(found):
        return ENDLESS
    return Frame(frame.function, frame.file, found.lineno, frame.kind)


@cache
def _tree(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the program's own: an invalid escape, for instance
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@cache
def _loops(text: str) -> tuple[ast.For | ast.AsyncFor | ast.While | Comprehension, ...]:
    tree = _tree(text)
    return tuple(node for node in (ast.walk(tree) if tree else ()) if isinstance(node, LOOPS))


def _runs_again(
    node: ast.For | ast.AsyncFor | ast.While | Comprehension,
    frame: Frame,
    names: frozenset[str],
    in_line: Counter[str],
) -> bool:
    """Whether the call in a frame's line, of a function of these names, is what a loop repeats.

    Args:
        in_line: how often the frame's line names what.
    """
    if isinstance(node, COMPREHENSIONS):
        return _spans(node, frame.line) and _is_of_items(node, frame, names, in_line)
    first = node.lineno if isinstance(node, ast.While) else node.body[0].lineno
    last = node.body[-1].end_lineno or first
    return first <= frame.line <= last and not _leaves(node.body)


def _spans(node: ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _is_of_items(
    node: Comprehension, frame: Frame, names: frozenset[str], in_line: Counter[str]
) -> bool:
    """Whether the call is one that a comprehension makes for its items, and not one beside it, or
    of what the first of its generators iterates over, which runs once.
    """
    if frame.function.endswith(FRAMES_OF_ITEMS):
        return True
    if isinstance(node, ast.GeneratorExp):
        return False
    once = {id(one) for one in ast.walk(node.generators[0].iter)}
    again = [one for one in ast.walk(node) if id(one) not in once]
    named = _named(again)
    if named.keys() & names:
        return True
    is_beside = any(in_line[name] > named[name] for name in names)
    return not is_beside and any(map(_may_execute, again))


def _may_execute(node: ast.AST) -> bool:
    """Whether an expression calls anything, or reads an attribute of an attribute, which an object
    mapper may load.
    """
    return isinstance(node, ast.Call | ast.Await) or (
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute)
    )


def _named(nodes: Iterable[ast.AST]) -> Counter[str]:
    """How often which variables and attributes are named."""
    return Counter(
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in nodes
        if isinstance(node, ast.Attribute | ast.Name)
    )


@cache
def _mentions(text: str) -> Mapping[int, Counter[str]]:
    """The same by the line in which an expression begins or ends."""
    tree = _tree(text)
    found: dict[int, list[ast.AST]] = defaultdict(list)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Attribute | ast.Name):
            for line in {node.lineno, node.end_lineno or node.lineno}:
                found[line].append(node)
    return {line: _named(nodes) for line, nodes in found.items()}


def _leaves(body: list[ast.stmt]) -> bool:
    """Whether statements leave the loop they are in, unless an exception or `continue` comes
    before: it tries again what is to be done once.
    """
    return any(_leaves_by(statement) for statement in body)


def _leaves_by(statement: ast.stmt) -> bool:
    match statement:
        case ast.Break() | ast.Return():
            return True
        case ast.With() | ast.AsyncWith():
            return _leaves(statement.body)
        case ast.Try():
            return any(map(_leaves, (statement.body, statement.orelse, statement.finalbody)))
        case ast.If():
            return _leaves(statement.body) and _leaves(statement.orelse)
    return False


def _is_endless(loop: ast.While) -> bool:
    """Whether nothing in a `while True` ends it, or it waits for work: as a coroutine does, or a
    worker.
    """
    inside = [node for part in loop.body for node in ast.walk(part)]
    if not any(isinstance(node, ast.Break | ast.Return) for node in inside):
        return True
    return any(map(_waits, inside))


def _waits(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return isinstance(node, ast.Await)
    is_queue = node.func.attr == "get" and not node.args
    return is_queue or node.func.attr in WAITS


@cache
def _functions(text: str) -> tuple[tuple[int, int], ...]:
    tree = _tree(text)
    return tuple(_lines_of_functions(tree)) if tree else ()


def _lines_of_functions(tree: ast.Module) -> Iterator[tuple[int, int]]:
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            yield node.lineno, node.end_lineno or node.lineno


def _function_at(text: str, line: int) -> tuple[int, int] | None:
    """The innermost function around a line."""
    around = [lines for lines in _functions(text) if lines[0] <= line <= lines[1]]
    return max(around, default=None)
