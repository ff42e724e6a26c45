"""Programs of thousands of lines: each call has its line, however long the function is."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import queryprof
from queryprof.collect.reader import read_profile

MOST_CONNECTIONS = 16384
"""Maximum number of open connections whose statements are counted (TRACKERS of connections.c)."""

SHAPES = (
    "db.execute(SQL)",
    "db.execute(\n        SQL\n    )",
    "[db.execute(SQL) for _ in range(1)]",
    "for _ in (1,):\n        db.execute(SQL)",
    "(lambda: db.execute(SQL))()",
    "x = (\n        1,\n        db.execute(SQL),\n        2,\n    )",
    "try:\n        raise KeyError\n    except KeyError:\n        db.execute(SQL)",
    "with nothing():\n        db.execute(SQL)",
    "assert db.execute(SQL) if True else 0, 'text'",
)
HEAD = """import contextlib
SQL = "SELECT 1"
nothing = contextlib.nullcontext


"""


def function(chance: random.Random, name: str, statements: int) -> str:
    """Return a function that makes the query with its argument's number, in one of many shapes."""
    lines = [f"def {name}(db, wanted):"]
    for number in range(statements):
        gap = "\n" * chance.choice((0, 0, 0, 1, 70, 5000))  # differences of one byte, two and three
        body = chance.choice(SHAPES).replace("\n", "\n    ")
        lines.append(f"{gap}    if wanted == {number}:\n        {body}")
    return "\n".join(lines) + "\n\n\n"


def lines_of(text: str) -> list[int]:
    """Return the lines that make queries, by number."""
    return [n for n, line in enumerate(text.splitlines(), 1) if "db.execute" in line]


def loaded(path: Path) -> dict[str, Callable[[object, int], None]]:
    found: dict[str, Callable[[object, int], None]] = {}
    exec(compile(path.read_text(), str(path), "exec"), found)
    return found


def test_each_line_of_long_functions(tmp_path: Path) -> None:
    """The lines run in any order: forwards, backwards, repeated, and from function to function."""
    import sqlite3

    chance = random.Random(5)
    path = tmp_path / "long.py"
    sizes = {"f": 400, "g": 150, "h": 3}
    path.write_text(HEAD + "".join(function(chance, name, size) for name, size in sizes.items()))
    functions = loaded(path)
    lines = lines_of(path.read_text())
    places = [(name, number) for name, size in sizes.items() for number in range(size)]
    assert len(lines) == len(places)
    calls = chance.choices(range(len(places)), k=1500) + list(range(len(places)))
    db = sqlite3.connect(":memory:")
    with queryprof.profile("x.qprof"):
        for call in calls:
            name, number = places[call]
            functions[name](db, number)
    db.close()

    found: Counter[int] = Counter()
    for aggregate in read_profile("x.qprof").aggregates:
        if aggregate.statement == "SELECT ?" and aggregate.operation == "execute":
            found[aggregate.path[0].line] += aggregate.count
    assert found == Counter(lines[call] for call in calls)


@pytest.mark.once
@pytest.mark.slow
def test_20_000_lines_and_10_000_statements_are_kept_apart(tmp_path: Path) -> None:
    """None of them is under (other)."""
    import sqlite3

    from queryprof.model import OTHER_LINE

    path = tmp_path / "generated.py"
    body = "\n".join(
        "    db.execute('SELECT 1 AS"
        f" column_{chr(97 + i // 5000)}{'x' * (i % 71)}{'y' * (i % 73)}')"
        for i in range(20_000)
    )
    path.write_text(f"def f(db):\n{body}\n")
    db = sqlite3.connect(":memory:")
    with queryprof.profile("x.qprof"):
        loaded(path)["f"](db)  # type: ignore[call-arg]
    db.close()

    profile = read_profile("x.qprof")
    executes = [a for a in profile.aggregates if a.operation == "execute"]
    assert sum(a.count for a in executes) == 20_000
    assert len({a.path[0].line for a in executes}) == 20_000
    assert not any(frame == OTHER_LINE for a in executes for frame in a.path)
    assert len({a.statement for a in executes}) > 10_000


@pytest.mark.once
def test_a_plan_is_requested_once_for_each_of_thousands_of_statements() -> None:
    """Later executions, in turns, request no plan."""
    import sqlite3

    from queryprof.core import _core

    statements = [f"SELECT 1 AS a{'x' * (i // 40)}_{'y' * (i % 40)}" for i in range(1900)]
    db = sqlite3.connect(":memory:")
    with queryprof.profile("x.qprof"):
        _core.set_plan_time_share(1.0)  # however long it takes
        for _ in range(3):
            for statement in statements:
                db.execute(statement)
        requested = _core.requested_plan_count()
    db.close()
    assert requested == len(statements)


def test_statements_of_thousands_of_connections_are_counted() -> None:
    """All connections that are open at once are counted, and so are those that take the places of
    others.
    """
    import sqlite3

    with queryprof.profile("x.qprof"):
        for _ in range(2):
            connections = [sqlite3.connect(":memory:") for _ in range(2500)]
            for db in connections:
                db.execute("SELECT 1 WHERE ? = 2", (1,)).fetchall()
            for db in connections:
                db.close()

    (executed,) = [
        a
        for a in read_profile("x.qprof").aggregates
        if a.statement == "SELECT ? WHERE ? = ?" and a.operation == "execute"
    ]
    assert (executed.count, executed.counted) == (5000, 5000)


@pytest.mark.once
def test_connections_one_after_the_other_are_counted() -> None:
    """There are more than can be tracked at once: each takes the place of a closed one."""
    import sqlite3

    with queryprof.profile() as recording:
        for _ in range(MOST_CONNECTIONS + 500):
            db = sqlite3.connect(":memory:")
            db.execute("SELECT 1").fetchall()
            db.close()
    (executed,) = [a for a in recording.profile.aggregates if a.operation == "execute"]
    assert executed.count == executed.counted == MOST_CONNECTIONS + 500


DEEP = """def query(db):
    db.execute("SELECT 1")


def down(db, depth, turn):
    if depth == 0:
        query(db)
    elif turn & 1:
        down(db, depth - 1, turn >> 1)
    else:
        down(db, depth - 1, turn >> 1)
"""


def test_paths_that_differ_many_frames_out(tmp_path: Path) -> None:
    """A recursion goes through two lines: all combinations have the same innermost frames."""
    import sqlite3

    path = tmp_path / "deep.py"
    path.write_text(DEEP)
    found: dict[str, Callable[..., None]] = {}
    exec(compile(DEEP, str(path), "exec"), found)
    db = sqlite3.connect(":memory:")
    with queryprof.profile("x.qprof"):
        for _ in range(3):
            for turn in range(64):
                for depth in (6, 3, 40):
                    found["down"](db, depth, turn)
    db.close()

    frames = 6
    expected: Counter[tuple[int, ...]] = Counter()
    for turn in range(64):
        for depth in (6, 3, 40):
            outwards = [9 if turn >> (depth - 1 - at) & 1 else 11 for at in range(depth)]
            expected[(2, 7, *outwards)[:frames]] += 3
    counted: Counter[tuple[int, ...]] = Counter()
    for aggregate in read_profile("x.qprof").aggregates:
        if aggregate.operation == "execute":
            lines = [frame.line for frame in aggregate.path if frame.file == str(path)]
            counted[tuple(lines)] += aggregate.count
    assert counted == expected


@pytest.mark.slow
def test_more_functions_than_are_kept_at_once() -> None:
    """There are more between two looks at the clock. All have their callers."""
    import sqlite3

    db = sqlite3.connect(":memory:")

    def query() -> None:
        db.execute("SELECT 1")

    with queryprof.profile("x.qprof"):
        for _ in range(20_000):
            exec(
                compile("def rule():\n    query()\nrule()\n", __file__ + "_rule.py", "exec"),
                {"query": query},
            )
    db.close()
    executes = [a for a in read_profile("x.qprof").aggregates if a.operation == "execute"]
    assert sum(a.count for a in executes) == 20_000
    found = {tuple(frame.function.rpartition(".")[2] for frame in a.path[:3]) for a in executes}
    assert found == {("query", "rule", "<module>")}


@pytest.mark.once
@pytest.mark.slow
def test_open_cursors_outlive_those_that_have_served_all_rows(tmp_path: Path) -> None:
    """A recursion holds an open cursor per level while thousands of cursors come and go at new
    addresses. The objects made of its rows lie between the cursors in memory.
    """
    import sqlite3

    db = sqlite3.connect(tmp_path / "tree.db")
    db.execute("CREATE TABLE node (id INTEGER PRIMARY KEY, parent INTEGER)")
    parents = [(None,), *(((child - 2) // 4 + 1,) for child in range(2, 6001))]
    db.executemany("INSERT INTO node (parent) VALUES (?)", parents)
    db.execute("CREATE INDEX node_parent ON node (parent)")
    db.commit()

    def tree(parent: int) -> list[dict[str, object]]:
        children = db.execute("SELECT id FROM node WHERE parent = ?", (parent,))
        return [{"id": c, "name": f"node {c}", "children": tree(c)} for (c,) in children]

    with queryprof.profile() as recording:
        for _ in range(5):
            assert len(tree(1)) == 4
    db.close()
    assert {a.statement for a in recording.profile.aggregates} == {
        "SELECT id FROM node WHERE parent = ?"
    }
    assert sum(a.rows for a in recording.profile.aggregates) == 5 * 5999
