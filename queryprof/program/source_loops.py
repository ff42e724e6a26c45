"""Find loops in a program's source, and the calls that they repeat."""

from __future__ import annotations

import ast
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from queryprof.model import ENDLESS, Frame

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
STATEMENTS = (ast.For, ast.AsyncFor, ast.While)
LOOPS = (*STATEMENTS, *COMPREHENSIONS)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)

FRAMES_OF_ITEMS = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")
"""Names of frames that compute the items of a comprehension. From CPython 3.12 (PEP 709), only
generator expressions have such a frame.
"""

EXECUTES = frozenset({"execute", "executemany", "execute_fetchall", "fetchone", "fetchall"})
"""Driver methods that execute statements or fetch rows (PEP 249, aiosqlite)."""

ITERATES = frozenset({"__iter__", "__aiter__"})
"""Methods that Python calls to iterate over an object, such as a lazy query."""

WAITS = frozenset({"sleep", "wait", "accept", "recv", "select", "poll"})
"""Methods that wait for work or for a time to pass. A `get()` without a key also waits, because it
is a queue's method.
"""

TAKES = frozenset({"get", "get_nowait", "receive", "receive_nowait", "recv"})
"""Methods that, if called without an argument, take an item from a queue or channel."""

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
"""Functions and methods of asyncio, anyio and trio that start concurrent work."""


def creates_tasks(text: str, line: int) -> bool:
    """Return whether a line names a function of MAKES_TASKS."""
    return not MAKES_TASKS.isdisjoint(_names_by_line(text).get(line, ()))


@cache
def needs_previous_row(text: str, line: int) -> bool:
    """Return whether a query in a loop takes an argument that comes from the previous query's row.

    The function follows assignments from the query to the loop's end, and from the loop's start to
    the query. A query that takes the item of a `for` loop does not count, because it runs once per
    item.
    """
    around = [
        one for one in _find_loops(text) if isinstance(one, STATEMENTS) and _is_in_body(one, line)
    ]
    loop = max(around, key=lambda one: one.lineno, default=None)
    changes = _variable_changes(loop) if loop else ()
    query = [one for one in changes if spans_line(one.value, line)]
    others = [one for one in changes if not spans_line(one.value, line)]
    rows = set().union(*(one.names for one in query))
    loops = [one for one in around if not isinstance(one, ast.While)]
    items = set().union(*(_assigned_names(one.target) for one in loops))
    for one in sorted(others, key=lambda one: (one.value.lineno < line, one.value.lineno)):
        rows = rows | one.names if one.uses & rows else rows - one.names
        if one.value.lineno < line:
            items = items | one.names if one.uses & items else items - one.names
    given = set().union(*(_argument_names(one.value) for one in query))
    return bool(given & rows - items) and not given & items


class _VariableChange(NamedTuple):
    """An assignment: the variables that get a new value, the expression of this value, and the
    variables in the expression.
    """

    names: set[str]
    value: ast.expr
    uses: set[str]


def _is_in_body(loop: ast.For | ast.AsyncFor | ast.While, line: int) -> bool:
    """Return whether a line is in the loop's body or condition, which run in each iteration."""
    first = loop if isinstance(loop, ast.While) else loop.body[0]
    return first.lineno <= line <= (loop.body[-1].end_lineno or line)


@cache
def _variable_changes(
    loop: ast.For | ast.AsyncFor | ast.While,
) -> tuple[_VariableChange, ...]:
    """Return the variable changes in a loop's body. A method call whose result is unused counts as
    a change of its object, as in `cursor.execute(...)`.
    """
    return tuple(
        _VariableChange(names, value, _variable_names(value)) for names, value in _assignments(loop)
    )


def _assignments(
    loop: ast.For | ast.AsyncFor | ast.While,
) -> Iterator[tuple[set[str], ast.expr]]:
    for one in (node for part in _parts_of_each_pass(loop) for node in ast.walk(part)):
        match one:
            case ast.Assign():
                yield set().union(*map(_assigned_names, one.targets)), one.value
            case ast.AnnAssign(value=ast.expr() as value):
                yield _assigned_names(one.target), value
            case ast.AugAssign() | ast.NamedExpr():
                yield _assigned_names(one.target), one.value
            case ast.For() | ast.AsyncFor():
                yield _assigned_names(one.target), one.iter
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
                yield {name}, one.value


def _parts_of_each_pass(loop: ast.For | ast.AsyncFor | ast.While) -> list[ast.AST]:
    """Return the parts of a loop that run in each iteration."""
    return [loop.test, *loop.body] if isinstance(loop, ast.While) else [*loop.body]


def _assigned_names(target: ast.AST) -> set[str]:
    """Return the variables that get a new value.

    Ignores assignments to items, such as `items[key] = ...`.
    """
    names = (one for one in ast.walk(target) if isinstance(one, ast.Name))
    return {one.id for one in names if isinstance(one.ctx, ast.Store)}


def _variable_names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _argument_names(value: ast.expr) -> set[str]:
    """Return the variables in the arguments of the innermost calls. If `value` has no call, return
    all its variables.
    """
    calls = [one for one in ast.walk(value) if isinstance(one, ast.Call)]
    arguments = [[*one.args, *(each.value for each in one.keywords)] for one in calls]
    innermost = [
        each
        for given in arguments
        if not any(isinstance(one, ast.Call) for part in given for one in ast.walk(part))
        for each in given
    ]
    return set().union(*map(_variable_names, innermost)) if calls else _variable_names(value)


@cache
def loop_sleeps(text: str, line: int) -> bool:
    """Return whether the loop that begins on a line calls a function named sleep, directly or
    through functions of the same file. A sleep before a retry, in an `except` block, does not
    count.
    """
    found = [one for one in _find_loops(text) if isinstance(one, STATEMENTS) and one.lineno == line]
    rest: list[ast.AST] = [statement for loop in found for statement in loop.body]
    bodies = _function_bodies(text)
    while rest:
        node = rest.pop()
        if isinstance(node, ast.Call):
            named = node.func
            name = named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", "")
            if name == "sleep" and not _is_zero(node.args):
                return True
            rest += bodies.pop(name, ())
        if not isinstance(node, ast.ExceptHandler | ast.FunctionDef | ast.Lambda):
            rest += ast.iter_child_nodes(node)
    return False


def _is_zero(arguments: list[ast.expr]) -> bool:
    """Return whether the first argument is 0: such a sleep only lets others run."""
    first = arguments[0] if arguments else None
    return isinstance(first, ast.Constant) and first.value == 0


def _function_bodies(text: str) -> dict[str, list[ast.stmt]]:
    """Return the statements of a file's functions and methods by name."""
    tree = parse_source(text)
    nodes = ast.walk(tree) if tree else ()
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return {one.name: one.body for one in nodes if isinstance(one, kinds)}


def innermost_loop(text: str, frame: Frame, called: str) -> Frame | None:
    """Return the innermost loop that repeats the frame's call in the same function, as a frame at
    the loop's line.

    Returns None without a loop. Returns ENDLESS for a loop that takes its items from a queue, and
    for a `while True` that waits for work or has no `break` or `return`.

    Args:
        called: the function that the frame called; "" if it called a driver.
    """
    names = frozenset({called}) if called else EXECUTES
    elsewhere = _names_by_line(text).get(frame.line, Counter())
    inside = [node for node in _find_loops(text) if _repeats_call(node, frame, names, elsewhere)]
    found = max(inside, key=lambda node: node.lineno, default=None)
    if found is None or _function_at(text, found.lineno) != _function_at(text, frame.line):
        return None
    if isinstance(found, STATEMENTS) and _takes_from_queue(found):
        return ENDLESS
    if isinstance(found, ast.While) and isinstance(found.test, ast.Constant) and _is_endless(found):
        return ENDLESS
    return Frame(frame.function, frame.file, found.lineno, frame.kind)


@cache
def parse_source(text: str) -> ast.Module | None:
    """Return the syntax tree of a program's source; None if the source is not valid Python."""
    try:
        with warnings.catch_warnings():
            # ignore warnings about the program's source, such as invalid escapes
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@cache
def _find_loops(text: str) -> tuple[ast.For | ast.AsyncFor | ast.While | Comprehension, ...]:
    tree = parse_source(text)
    return tuple(node for node in (ast.walk(tree) if tree else ()) if isinstance(node, LOOPS))


def _repeats_call(
    node: ast.For | ast.AsyncFor | ast.While | Comprehension,
    frame: Frame,
    names: frozenset[str],
    in_line: Counter[str],
) -> bool:
    """Return whether a loop repeats a call on the frame's line. `names` are the called functions.

    Args:
        in_line: the names in the frame's line, with their counts.
    """
    if isinstance(node, COMPREHENSIONS):
        return spans_line(node, frame.line) and _calls_per_item(node, frame, names, in_line)
    first = node.lineno if isinstance(node, ast.While) else node.body[0].lineno
    last = node.body[-1].end_lineno or first
    return first <= frame.line <= last and not _runs_once(node)


def spans_line(node: ast.expr | ast.stmt, line: int) -> bool:
    """Return whether a line is part of a node."""
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _calls_per_item(
    node: Comprehension, frame: Frame, names: frozenset[str], in_line: Counter[str]
) -> bool:
    """Return whether a comprehension makes the call once per item.

    A call outside the comprehension does not count. A call in its first iterable does not count
    either, because it runs only once.
    """
    if frame.function.endswith(FRAMES_OF_ITEMS):
        return True
    if isinstance(node, ast.GeneratorExp):
        return False
    once = {id(one) for one in (node, node.generators[0], *ast.walk(node.generators[0].iter))}
    again = [one for one in ast.walk(node) if id(one) not in once]
    if names <= ITERATES:
        return any(map(_may_iterate, again))
    named = _count_names(again)
    if named.keys() & names:
        return True
    return not any(in_line[one] > named[one] for one in names) and any(map(_may_execute, again))


def _may_execute(node: ast.AST) -> bool:
    """Return whether an expression may execute a query.

    A call or await may execute a query. So may reading an attribute of an attribute, which an ORM
    may load lazily.
    """
    return isinstance(node, ast.Call | ast.Await) or (
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute)
    )


def _may_iterate(node: ast.AST) -> bool:
    """Return whether a part of an expression may iterate over an object."""
    return isinstance(node, ast.comprehension | ast.Call | ast.Starred | ast.In | ast.NotIn)


def _count_names(nodes: Iterable[ast.AST]) -> Counter[str]:
    """Count the names of variables and attributes."""
    return Counter(
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in nodes
        if isinstance(node, ast.Attribute | ast.Name)
    )


@cache
def _names_by_line(text: str) -> Mapping[int, Counter[str]]:
    """Count the names on each line. A name counts on the first and last line of its expression."""
    tree = parse_source(text)
    found: dict[int, list[ast.AST]] = defaultdict(list)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Attribute | ast.Name):
            for line in {node.lineno, node.end_lineno or node.lineno}:
                found[line].append(node)
    return {line: _count_names(nodes) for line, nodes in found.items()}


@cache
def _runs_once(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Return whether a loop's body always ends the loop, unless it raises or continues.

    Such a loop retries work that must succeed once.
    """
    return _always_leaves(loop.body)


def _always_leaves(body: list[ast.stmt]) -> bool:
    return any(_leaves_loop(statement) for statement in body)


def _leaves_loop(statement: ast.stmt) -> bool:
    match statement:
        case ast.Break() | ast.Return():
            return True
        case ast.With() | ast.AsyncWith():
            return _always_leaves(statement.body)
        case ast.Try():
            return any(map(_always_leaves, (statement.body, statement.orelse, statement.finalbody)))
        case ast.If():
            return _always_leaves(statement.body) and _always_leaves(statement.orelse)
    return False


def _is_endless(loop: ast.While) -> bool:
    """Return whether a `while True` has no break or return, or waits for work."""
    inside = [node for part in loop.body for node in ast.walk(part)]
    if not any(isinstance(node, ast.Break | ast.Return) for node in inside):
        return True
    return any(map(_waits_for_work, inside))


@cache
def _takes_from_queue(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Return whether each iteration takes an item from a queue in a variable or attribute. A
    `get()` that executes a query has a key or follows another call, so it does not count.
    """
    values = (one.value for one in _variable_changes(loop) if one.names)
    calls = (one.value if isinstance(one, ast.Await) else one for one in values)
    return any(
        isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and isinstance(one.func.value, ast.Name | ast.Attribute)
        and one.func.attr in TAKES
        and _has_no_key(one)
        for one in calls
    )


def _has_no_key(call: ast.Call) -> bool:
    """Return whether a call has no arguments except `block` or `timeout`: `get(timeout=1)`, but not
    `get(pk=1)`.
    """
    return not call.args and all(one.arg in ("block", "timeout") for one in call.keywords)


def _waits_for_work(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return isinstance(node, ast.Await)
    is_queue = node.func.attr == "get" and _has_no_key(node)
    return is_queue or node.func.attr in WAITS


@cache
def _function_lines(text: str) -> tuple[tuple[int, int], ...]:
    tree = parse_source(text)
    return tuple(_find_function_lines(tree)) if tree else ()


def _find_function_lines(tree: ast.Module) -> Iterator[tuple[int, int]]:
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            yield node.lineno, node.end_lineno or node.lineno


def _function_at(text: str, line: int) -> tuple[int, int] | None:
    """Return the first and last line of the innermost function around a line."""
    around = [lines for lines in _function_lines(text) if lines[0] <= line <= lines[1]]
    return max(around, default=None)
