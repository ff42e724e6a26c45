"""Runs on less data, made from a recording and from replays."""

from __future__ import annotations

from queryprof.comparing.baseline_figures import StatementFigures
from queryprof.growth.composed import compose_runs

PARENT, CHILD, OTHER, SINGLE = "SELECT a FROM p", "SELECT b FROM c", "SELECT d FROM o", "SELECT 1"

ORDER = (PARENT, CHILD, OTHER, SINGLE)


def figures(executions: int, rows: int, steps: int) -> StatementFigures:
    return StatementFigures(executions, rows, steps, 0)


def test_a_statement_runs_as_often_as_its_parent_returns_rows() -> None:
    """The replays executed 10 of the child's 80 executions."""
    recorded = {
        PARENT: figures(1, 80, 400),
        CHILD: figures(80, 160, 1600),
        OTHER: figures(7, 7, 70),
        SINGLE: figures(1, 1, 5),
        "gone": figures(3, 3, 3),
    }
    replays = [
        (
            share,
            {"p": 80 // share},
            {
                PARENT: figures(1, 80 // share, 400 // share),
                CHILD: figures(10, 20, 200 // share),
                OTHER: figures(7, 7, 70),
                SINGLE: figures(1, 1, 5),
            },
        )
        for share in (8, 4, 2, 1)
    ]
    found = compose_runs(recorded, ORDER, replays)
    assert [run.size for run in found.runs] == [1, 2, 4, 8]
    assert [run.figures[CHILD].executions for run in found.runs] == [10, 20, 40, 80]
    assert [run.figures[CHILD].rows for run in found.runs] == [20, 40, 80, 160]
    assert [run.figures[CHILD].vm_steps for run in found.runs] == [25, 100, 400, 1600]
    assert {run.figures[OTHER].executions for run in found.runs} == {7}
    assert found.unexplained == (OTHER,)
    assert found.missing == ("gone",)


def test_two_statements_for_each_others_rows_do_not_loop() -> None:
    recorded = {one: figures(20, 20, 20) for one in (PARENT, CHILD)}
    replays = [(share, {}, recorded) for share in (8, 4, 2, 1)]
    found = compose_runs(recorded, ORDER, replays)
    assert found.unexplained == (PARENT, CHILD)


def test_a_statement_without_known_steps_has_none() -> None:
    recorded = {SINGLE: StatementFigures(1, 1, None, None)}
    replays = [(share, {}, recorded) for share in (8, 4, 2, 1)]
    assert compose_runs(recorded, ORDER, replays).runs[0].figures[SINGLE].vm_steps is None


def test_the_parent_is_the_last_statement_before() -> None:
    """Three statements return as many rows as the child is executed; one of them runs later."""
    names = ("SELECT a FROM late", "SELECT a FROM p1", "SELECT a FROM p2")
    recorded = {one: figures(1, 20, 20) for one in names} | {CHILD: figures(20, 20, 20)}
    shares = {name: {"late": 1, "p1": 2, "p2": 4}[name.split()[-1]] for name in names}
    replays = [
        (share, {}, {one: figures(1, 20 * shares.get(one, 1) // share, 20) for one in recorded})
        for share in (8, 4, 2, 1)
    ]
    replays[-1] = (1, {}, recorded)
    found = compose_runs(recorded, (names[1], names[2], CHILD, names[0]), replays)
    assert [run.figures[CHILD].executions for run in found.runs[:3]] == [10, 20, 40]
