"""Find the attributes that a program reads of a query's rows, if it reads nothing else of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from queryprof.program.source_loops import COMPREHENSIONS, parse_source, spans_line


@cache
def only_attributes(text: str, line: int) -> tuple[str, ...]:
    """Return the attributes that the loop over a line's rows reads, in alphabetical order. The
    result is empty if the loop also uses whole rows, calls their methods or sets their attributes,
    or if the line has not exactly one loop.
    """
    tree = parse_source(text)
    loops = list(_loops_over_line(tree, line)) if tree else []
    if len(loops) != 1:
        return ()
    name, body = loops[0]
    inside = [node for one in body for node in ast.walk(one)]
    called = {id(one.func) for one in inside if isinstance(one, ast.Call)}
    reads = [
        one
        for one in inside
        if isinstance(one, ast.Attribute)
        and isinstance(one.value, ast.Name)
        and one.value.id == name
    ]
    is_read = all(isinstance(one.ctx, ast.Load) and id(one) not in called for one in reads)
    uses = sum(isinstance(one, ast.Name) and one.id == name for one in inside)
    return tuple(sorted({one.attr for one in reads})) if is_read and uses == len(reads) else ()


def _loops_over_line(tree: ast.Module, line: int) -> Iterator[tuple[str, list[ast.AST]]]:
    """Yield the name of the item and the body of each loop whose rows the line gets."""
    for one in ast.walk(tree):
        if isinstance(one, COMPREHENSIONS) and spans_line(one.generators[0].iter, line):
            first, *others = one.generators
            values = [one.key, one.value] if isinstance(one, ast.DictComp) else [one.elt]
            yield _name(first.target), [*values, *first.ifs, *others]
        elif isinstance(one, ast.For | ast.AsyncFor) and spans_line(one.iter, line):
            yield _name(one.target), [*one.body, *one.orelse]


def _name(target: ast.expr) -> str:
    return target.id if isinstance(target, ast.Name) else ""
