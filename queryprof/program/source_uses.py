"""Find out how the program's source uses the rows of a query: whether it needs only their count,
their sum or some of them.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from queryprof.program.source_loops import COMPREHENSIONS, FUNCTIONS, parse_source, spans_line

ADDS = frozenset({"append", "extend", "add"})
"""Methods that add objects to a collection, such as an ORM relation."""

COUNT, SUM, EXISTS, FIRST, FILTER = "count", "sum", "exists", "first", "filter"
"""The kinds of reductions. The program needs only the number of rows (COUNT), a sum, minimum or
maximum (SUM), whether there are rows (EXISTS), the first rows (FIRST), or the rows that match a
condition (FILTER).
"""

REDUCERS = {
    "len": COUNT,
    "sum": SUM,
    "min": SUM,
    "max": SUM,
    "any": EXISTS,
    "bool": EXISTS,
    "sorted": FIRST,
}
"""Python functions with an equivalent in SQL, and their kind of reduction."""

RETURNS_NUMBER = frozenset({"count", "fetchone", "fetchval", "scalar", "scalar_one"})
"""Methods of libraries and drivers that return the result of a count query."""

READS_VALUES = frozenset({"values_list", "tuples", "dicts", "namedtuples"})
"""Methods of object mappers that return values, not objects. So does `values()` with arguments."""

DISTINCT = frozenset({"set", "frozenset", "dict", "Counter"})
"""Functions that remove duplicates."""


@cache
def attributes_appended_to(text: str, line: int) -> frozenset[str]:
    """Return the attributes that a line only appends to, such as `items` in
    `order.items.append(item)`.
    """
    tree = parse_source(text)
    nodes = [one for one in (ast.walk(tree) if tree else ()) if isinstance(one, ast.Attribute)]
    here = [one for one in nodes if one.lineno <= line <= (one.end_lineno or one.lineno)]
    added = [
        one.value.attr for one in here if one.attr in ADDS and isinstance(one.value, ast.Attribute)
    ]
    named = Counter(one.attr for one in here)
    return frozenset(one for one in added if named[one] == added.count(one))


@cache
def row_reduction(text: str, line: int, attribute: str = "", is_lazy: bool = False) -> str:
    """Return how the program reduces the rows of a line's query, if it needs only the result of
    this reduction and not the rows.

    Args:
        attribute: the attribute that loads the rows; "" if a method call on the line does.
        is_lazy: whether a lazy query is executed by `len()`, a loop or a test on the line, and not
            by a method call.

    Returns:
        COUNT, SUM, EXISTS, FIRST, FILTER, or "".
    """
    tree = parse_source(text)
    if tree is None:
        return ""
    here = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.expr | ast.stmt) and spans_line(node, line)
    ]
    reductions = list(_find_reductions(here))
    if attribute:
        loads = [one for one in here if isinstance(one, ast.Attribute) and one.attr == attribute]
        whole = {id(rows): kind for rows, kind in reductions}
        kinds = {whole.get(id(one), "") for one in loads}
        return kinds.pop() if len(kinds) == 1 else ""
    queries = [
        one for one in here if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)
    ]
    items = {
        name.id
        for one in here
        if isinstance(one, COMPREHENSIONS)
        for each in one.generators
        for name in ast.walk(each.target)
        if isinstance(name, ast.Name)
    }
    for rows, kind in reductions:
        if _root_name(rows) in items or _takes_each_row(rows):
            continue  # rows of an item, maybe loaded by an earlier query, or a text
        inside = {id(one) for one in ast.walk(rows)}
        around = {id(one) for one in here if id(rows) in map(id, ast.walk(one))}
        if id(rows) in map(id, queries) and all(id(one) in inside | around for one in queries):
            return kind
    is_lazy = is_lazy or not _calls_more_than_builtins(here)
    if is_lazy and (kind := _lazy_reduction(tree, here, line)):
        return kind
    return (
        _later_reduction(tree, here, line)
        or _sum_in_loop(here, line)
        or _filter_of_rows(tree, here, line)
    )


@cache
def reads_values(text: str, line: int) -> bool:
    """Return whether a line asks an object mapper for values, not for objects."""
    tree = parse_source(text)
    calls = [one for one in (ast.walk(tree) if tree else ()) if isinstance(one, ast.Call)]
    return any(
        one.func.attr in READS_VALUES or (one.func.attr == "values" and bool(one.args))
        for one in calls
        if isinstance(one.func, ast.Attribute) and spans_line(one, line)
    )


@cache
def only_tests_existence(text: str, line: int) -> bool:
    """Return whether the program only tests if the count from a line's query is 0, as in `if
    query.count():`, or in `total = query.count()` before `if total == 0:`.
    """
    tree = parse_source(text)
    if tree is None:
        return False
    inside = _nodes_of_function(tree, line)
    asked = {id(value) for value in _asked_numbers(inside)}
    here = [one for one in inside if isinstance(one, ast.expr | ast.stmt)]
    here = [one for one in here if spans_line(one, line)]
    calls = [one for one in here if isinstance(one, ast.Call) and id(one) in asked]
    assigned = [one for one in here if isinstance(one, ast.Assign) and len(one.targets) == 1]
    name = assigned[-1].targets[0] if assigned else None
    if not isinstance(name, ast.Name):
        return len(calls) == 1
    loads = [id(one) for one in _loads_of(name.id, inside)]
    if any(isinstance(one, ast.Global | ast.Nonlocal) for one in inside) or any(
        isinstance(one, ast.Name) and one.id in ("locals", "vars") for one in inside
    ):
        return False  # other code may read the name
    return len(calls) == 1 or (bool(loads) and asked.issuperset(loads))


def _asked_numbers(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """Yield the names and counting calls whose values are compared with zero."""
    values = [value for one in nodes for value in _compared_with_zero(one)]
    while values:
        value = values.pop()
        if isinstance(value, ast.Subscript | ast.Await):  # cursor.fetchone()[0]
            values.append(value.value)
        elif isinstance(value, ast.Name) or (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr in RETURNS_NUMBER
        ):
            yield value


def _compared_with_zero(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the values that a node compares with zero, or tests as a condition."""
    if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
        tests = [node.test]
        while tests:
            test = tests.pop()
            tests += test.values if isinstance(test, ast.BoolOp) else ()
            yield test
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        (other,), (operator,) = node.comparators, node.ops
        number = other.value if isinstance(other, ast.Constant) else None
        is_zero = number == 0 and isinstance(operator, ast.Gt | ast.Eq | ast.NotEq | ast.LtE)
        if is_zero or (number == 1 and isinstance(operator, ast.GtE | ast.Lt)):
            yield node.left


def _takes_each_row(value: ast.expr) -> bool:
    """Return whether a call processes each row, such as ",".join(f(x) for x in rows)."""
    return isinstance(value, ast.Call) and any(
        isinstance(one, COMPREHENSIONS) for one in ast.walk(value)
    )


def _keeps_rows(value: ast.expr) -> bool:
    """Return whether a value has exactly one item for each row of its query, without further
    processing. Sets, dicts and lists with a condition may have fewer items.
    """
    if isinstance(value, ast.ListComp):
        is_one = len(value.generators) == 1 and not value.generators[0].ifs
        plain = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.expr_context)
        return is_one and all(isinstance(one, plain) for one in ast.walk(value.elt))
    is_distinct = isinstance(value, ast.Call) and (
        isinstance(value.func, ast.Name) and value.func.id in DISTINCT
    )
    return not isinstance(value, COMPREHENSIONS) and not is_distinct and not _takes_each_row(value)


def _root_name(value: ast.expr) -> str:
    """Return the name at the start of a chain of calls and attributes; "" if there is no name."""
    while isinstance(value, ast.Call | ast.Attribute | ast.Subscript):
        value = value.func if isinstance(value, ast.Call) else value.value
    return value.id if isinstance(value, ast.Name) else ""


def _find_reductions(nodes: Sequence[ast.AST]) -> Iterator[tuple[ast.expr, str]]:
    """Yield the rows that are the argument of a function of REDUCERS, and the kind of reduction."""
    first = {
        id(one.value)
        for one in nodes
        if isinstance(one, ast.Subscript)
        and isinstance(one.slice, ast.Slice)
        and one.slice.lower is None
        and one.slice.upper is not None
    }
    for one in nodes:
        if not (isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.args):
            continue
        kind = REDUCERS.get(one.func.id, "")
        if not kind or (kind == FIRST and id(one) not in first) or len(one.args) > 1:
            continue
        if any(map(_key_may_compute, one.keywords)):
            continue
        rows = one.args[0]
        if not isinstance(rows, COMPREHENSIONS):
            yield rows, kind
        elif isinstance(rows, ast.GeneratorExp | ast.ListComp) and len(rows.generators) == 1:
            only = rows.generators[0]
            values = [rows.elt, *only.ifs]
            if not any(isinstance(each, ast.Call) for one in values for each in ast.walk(one)):
                yield only.iter, kind


def _key_may_compute(argument: ast.keyword) -> bool:
    """Return whether a keyword argument, such as `key`, may compute more than the value of a
    column.
    """
    is_simple = isinstance(argument.value, ast.Lambda | ast.Constant)
    return not is_simple or any(isinstance(one, ast.Call) for one in ast.walk(argument.value))


def _later_reduction(tree: ast.Module, here: Sequence[ast.AST], line: int) -> str:
    """Return the kind of reduction if the line assigns the rows to a name, and the function only
    reduces this name.
    """
    assigned = [one for one in here if isinstance(one, ast.Assign) and len(one.targets) == 1]
    name = assigned[-1].targets[0] if assigned else None
    if not isinstance(name, ast.Name) or not _keeps_rows(assigned[-1].value):
        return ""
    inside = _nodes_of_function(tree, line)
    loads = {id(one) for one in _loads_of(name.id, inside)}
    kinds = {id(rows): kind for rows, kind in _find_reductions(inside) if id(rows) in loads}
    found = set(kinds.values())
    return found.pop() if len(found) == 1 and loads == kinds.keys() else ""


def _nodes_of_function(tree: ast.Module, line: int) -> list[ast.AST]:
    """Return the nodes of the innermost function around a line, or of the module."""
    functions = [
        one for one in ast.walk(tree) if isinstance(one, FUNCTIONS) and spans_line(one, line)
    ]
    return list(ast.walk(functions[-1] if functions else tree))


def _loads_of(name: str, nodes: Iterable[ast.AST]) -> list[ast.Name]:
    return [
        one
        for one in nodes
        if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
    ]


def _calls_more_than_builtins(nodes: Iterable[ast.AST]) -> bool:
    calls = [one.func for one in nodes if isinstance(one, ast.Call)]
    return not all(isinstance(one, ast.Name) and hasattr(builtins, one.id) for one in calls)


def _lazy_reduction(tree: ast.Module, here: Sequence[ast.AST], line: int) -> str:
    """Return the kind of reduction if the line executes a lazy query by its name, as in
    `len(query)` or `if query:`. All other uses of the name must be reductions too, or derive
    another query, as in `query.filter(...)` or `query[:25]`.
    """
    inside = _nodes_of_function(tree, line)
    kinds = {id(rows): kind for rows, kind in (*_find_reductions(inside), *_truth_tests(inside))}
    names = [one for one in here if isinstance(one, ast.Name) and id(one) in kinds]
    names = [one for one in names if spans_line(one, line)]
    if len(names) != 1:
        return ""
    bases = {
        id(one.value)
        for one in inside
        if isinstance(one, ast.Attribute)
        or (isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Slice))
    }
    loads = {id(one) for one in _loads_of(names[0].id, inside)}
    return kinds[id(names[0])] if loads <= kinds.keys() | bases else ""


def _truth_tests(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, str]]:
    """Yield the names that a condition tests for being empty."""
    for one in nodes:
        test = one.test if isinstance(one, ast.If | ast.While | ast.IfExp) else None
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test = test.operand
        if isinstance(test, ast.Name):
            yield test, EXISTS


def _sum_in_loop(here: Sequence[ast.AST], line: int) -> str:
    """Return SUM if a `for` loop over the line's rows does nothing but add values (+=)."""
    for loop in here:
        if isinstance(loop, ast.For) and spans_line(loop.iter, line):
            return SUM if all(map(_only_adds, loop.body)) and not loop.orelse else ""
    return ""


def _filter_of_rows(tree: ast.Module, here: Sequence[ast.AST], line: int) -> str:
    """Return FILTER if a single loop reads the line's rows and skips all rows that do not match a
    condition. The loop may be on the line itself, or be the only reader of a name to which the line
    assigns the rows.
    """
    assigned = [one for one in here if isinstance(one, ast.Assign) and len(one.targets) == 1]
    name = assigned[-1].targets[0] if assigned else None
    inside = _nodes_of_function(tree, line)
    filtered = _filtered_rows(ast.walk(assigned[-1].value)) if assigned else ()
    if isinstance(name, ast.Name) and not any(spans_line(rows, line) for rows in filtered):
        loads = {id(one) for one in _loads_of(name.id, inside)}
        loops = [one for one in inside if isinstance(one, (*COMPREHENSIONS, ast.For, ast.While))]
        repeated = {id(one) for loop in loops for one in ast.walk(loop) if one is not loop}
        once = [one for one in inside if id(one) not in repeated]
        sources = {id(rows) for rows in _filtered_rows(once)}
        return FILTER if len(loads) == 1 and loads <= sources else ""
    return FILTER if any(spans_line(rows, line) for rows in _filtered_rows(inside)) else ""


def _filtered_rows(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """Yield the rows of loops and comprehensions that skip rows by a condition of the row."""
    for one in nodes:
        if isinstance(one, COMPREHENSIONS):
            first = one.generators[0]
            if first.ifs and all(_compares_attribute(test, first.target) for test in first.ifs):
                yield first.iter
        elif isinstance(one, ast.For) and len(one.body) == 1 and isinstance(one.body[0], ast.If):
            only = one.body[0]
            if not only.orelse and _compares_attribute(only.test, one.target):
                yield one.iter


def _compares_attribute(test: ast.expr, item: ast.expr) -> bool:
    """Return whether a condition tests a loop item's attribute for equality, without a call. Such a
    condition matches few rows, and SQL can express it.
    """
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_compares_attribute(one, item) for one in test.values)
    if not isinstance(test, ast.Compare) or not isinstance(item, ast.Name):
        return False
    if not all(isinstance(one, ast.Eq | ast.In | ast.Is) for one in test.ops):
        return False
    if any(isinstance(one, ast.Call) for one in ast.walk(test)):
        return False
    left = test.left
    is_part = isinstance(left, ast.Attribute | ast.Subscript) and isinstance(left.value, ast.Name)
    return is_part and _root_name(left) == item.id


def _only_adds(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return all(map(_only_adds, [*statement.body, *statement.orelse]))
    is_sum = isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add)
    return is_sum and not any(isinstance(one, ast.Call) for one in ast.walk(statement))
