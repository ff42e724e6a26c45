"""Find the attributes that a program reads from a query's rows, if it uses nothing else of the
rows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from queryprof.program.source_loops import COMPREHENSIONS, FUNCTIONS, parse_source

READ_ONLY = frozenset(
    {
        *("casefold", "count", "date", "decode", "encode", "endswith", "find", "format", "hex"),
        *("isoformat", "items", "join", "keys", "lower", "lstrip", "replace", "rstrip", "split"),
        *("startswith", "strftime", "strip", "time", "timestamp", "title", "upper", "values"),
    }
)
"""Methods of texts, dates and dicts that change nothing."""

OTHER_ROWS = frozenset(
    {
        *("dicts", "distinct", "mappings", "namedtuples", "raw", "tuples", "unique"),
        *("values", "values_list"),
    }
)
"""Methods of queries that return no objects, or rows that depend on the selected columns."""

ROWS, OBJECTS = "execute", "scalars"
"""SQLAlchemy's `execute()` returns rows, and `execute().scalars()` objects."""


class _Loop(NamedTuple):
    """A loop: the lines that get its rows, the item's name and the code that uses the item."""

    first_line: int
    last_line: int
    name: str
    rows: ast.expr
    body: list[ast.AST]
    function: ast.AST
    is_comprehension: bool


@cache
def only_attributes(text: str, line: int) -> tuple[str, ...]:
    """Return the attributes that the loop over a line's rows reads, in alphabetical order. The
    result is empty if other code may use the rows, or if the line has not exactly one loop.
    """
    loops = [one for one in _loops_of(text) if one.first_line <= line <= one.last_line]
    if len(loops) != 1 or not _is_plain_query(loops[0].rows) or _is_used_outside(loops[0]):
        return ()
    inside = [node for one in loops[0].body for node in ast.walk(one)]
    reads = [
        one
        for one in inside
        if isinstance(one, ast.Attribute)
        and isinstance(one.value, ast.Name)
        and one.value.id == loops[0].name
    ]
    is_whole = len(_names(loops[0].name, inside)) != len(reads)
    if is_whole or not _only_reads(reads, inside):
        return ()
    return tuple(sorted({one.attr for one in reads}))


@cache
def _loops_of(text: str) -> tuple[_Loop, ...]:
    tree = parse_source(text)
    return tuple(_find_loops(tree, tree)) if tree else ()


def _find_loops(node: ast.AST, function: ast.AST) -> Iterator[_Loop]:
    """Yield the loops below a node with the innermost functions around them."""
    waiting = [(node, function)]
    while waiting:
        one, around = waiting.pop()
        if isinstance(one, COMPREHENSIONS):
            first, *others = one.generators
            values = [one.key, one.value] if isinstance(one, ast.DictComp) else [one.elt]
            body: list[ast.AST] = [*values, *first.ifs, *others]
            yield _loop(first.target, first.iter, body, around, is_comprehension=True)
        elif isinstance(one, ast.For | ast.AsyncFor):
            body = [*one.body, *one.orelse]
            yield _loop(one.target, one.iter, body, around, is_comprehension=False)
        inner = one if isinstance(one, FUNCTIONS) else around
        waiting += [(each, inner) for each in ast.iter_child_nodes(one)]


def _loop(
    target: ast.expr,
    rows: ast.expr,
    body: list[ast.AST],
    function: ast.AST,
    *,
    is_comprehension: bool,
) -> _Loop:
    name = target.id if isinstance(target, ast.Name) else ""
    last = rows.end_lineno or rows.lineno
    return _Loop(rows.lineno, last, name, rows, body, function, is_comprehension)


def _is_plain_query(rows: ast.expr) -> bool:
    """Return whether the expression is a name, or a chain of method calls that returns objects."""
    called = []
    value = rows.value if isinstance(rows, ast.Await) else rows
    while isinstance(value, ast.Call | ast.Attribute):
        if isinstance(value, ast.Attribute):
            value = value.value
        elif isinstance(value.func, ast.Attribute):
            called.append(value.func.attr)
            value = value.func
        else:
            return False  # a function, which may return other objects
    is_rows = ROWS in called and OBJECTS not in called
    return isinstance(value, ast.Name) and not is_rows and OTHER_ROWS.isdisjoint(called)


def _is_used_outside(loop: _Loop) -> bool:
    """Return whether the function also uses the last item after the loop, or loops over the rows
    again, which some libraries keep in memory.
    """
    everything = list(ast.walk(loop.function))
    inside = {id(node) for one in loop.body for node in ast.walk(one)}
    items = [one for one in _names(loop.name, everything) if isinstance(one.ctx, ast.Load)]
    if not loop.is_comprehension and not inside.issuperset(map(id, items)):
        return True
    if not isinstance(loop.rows, ast.Name):
        return False
    bases = {id(one.value) for one in everything if isinstance(one, ast.Attribute)}
    loads = [one for one in _names(loop.rows.id, everything) if isinstance(one.ctx, ast.Load)]
    return sum(id(one) not in bases for one in loads) > 1


def _names(name: str, nodes: Iterable[ast.AST]) -> list[ast.Name]:
    return [one for one in nodes if isinstance(one, ast.Name) and one.id == name]


def _only_reads(attributes: list[ast.Attribute], nodes: Iterable[ast.AST]) -> bool:
    """Return whether code only reads attributes: it neither sets them, nor calls them, nor changes
    the objects in them.
    """
    read = {id(one) for one in attributes}
    is_loaded = all(isinstance(one.ctx, ast.Load) for one in attributes)
    return is_loaded and not any(_may_change(one, read) for one in nodes)


def _may_change(node: ast.AST, read: set[int]) -> bool:
    """Return whether a node may change the object in one of the attributes."""
    if isinstance(node, ast.Call):
        return id(node.func) in read
    if isinstance(node, ast.Attribute) and id(node.value) in read:
        return node.attr not in READ_ONLY or not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Subscript) and id(node.value) in read:
        is_text = isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Load)
        return not is_text  # the code may change this item of a collection
    return False
