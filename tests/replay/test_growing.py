"""`queryprof lab grow`: the law of a recorded workload."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from growth.planted import PLANTED

from conftest import Run
from queryprof.analysis.baseline_rules import RegressionRules
from queryprof.collect.reader import read_profile
from queryprof.comparing.baseline_figures import figures_of_test
from queryprof.growth.composed import ComposedRuns, compose_runs
from queryprof.growth.growths import ALL, VM_STEPS, growths_of_statements
from queryprof.replay.growing import replay_shares
from queryprof.replay.replaying import load_replay

pytestmark = pytest.mark.once

PROGRAM = """
import sqlite3, sys
sys.path.insert(0, {tests!r})
from growth.planted import PLANTED, Shop

name, path, buyers = sys.argv[1], sys.argv[2], int(sys.argv[3])
con = sqlite3.connect(path, isolation_level=None)
if buyers:
    con.execute("BEGIN")
    Shop(con, PLANTED[name].more).populate(buyers)
    con.execute("COMMIT")
else:
    shop = Shop.__new__(Shop)
    shop.con = con
    PLANTED[name].run(shop)
"""

Record = Callable[[str, int], Path]

UNSEEN = {"all pages", "half of the buyers"}
"""Their loops' lengths follow from no statement's rows: said, and not measured."""

UNRANKED = {"a logarithm", "n log n"}
"""Their values are compared with no column. Their exponents are right, but not their logarithms."""

QUICK = ("lines of sales, no index", "newest with lines", "things of lines", "all pages")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "shop.py"
    path.write_text(PROGRAM.format(tests=str(Path(__file__).parents[1])))
    return path


@pytest.fixture
def recorded(queryprof: Run, program: Path, tmp_path: Path) -> Record:
    def record(name: str, buyers: int) -> Path:
        database, before = tmp_path / "shop.db", tmp_path / "before.db"
        subprocess.run([sys.executable, program, name, database, str(buyers)], check=True)
        before.write_bytes(database.read_bytes())
        result = queryprof(
            *("run", "--record-workload", "--no-report", "-o", "x.qprof"),
            *(program, name, database, 0),
        )
        assert result.returncode == 0, result.stderr
        return before

    return record


def grown(database: Path, folder: Path) -> ComposedRuns:
    folder.mkdir()
    pasts = replay_shares(load_replay("x.qprof", str(database)), str(folder), lambda: None)
    profiles = [read_profile(one.trace) for one in pasts]
    return compose_runs(
        figures_of_test(read_profile("x.qprof").aggregates, RegressionRules()),
        pasts[-1].order,
        [
            (past.share, past.rows, figures_of_test(one.aggregates, RegressionRules(), one.plans))
            for past, one in zip(pasts, profiles, strict=True)
        ],
    )


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] * (one not in QUICK)) for one in PLANTED]
)
def test_the_law_of_one_recording(recorded: Record, tmp_path: Path, name: str) -> None:
    database = recorded(name, 40 if name == "triples" else 160)
    found = grown(database, tmp_path / "replays")
    assert bool(found.unexplained) == (name in UNSEEN | {"by key", "settings"})
    assert not found.missing
    if name in UNSEEN:
        return
    (total,) = [
        x for x in growths_of_statements(found.runs) if (x.statement, x.figure) == (ALL, VM_STEPS)
    ]
    assert total.law.exponent == pytest.approx(PLANTED[name].exponent, abs=0.05)
    assert total.law.has_log == (PLANTED[name].has_log and name not in UNRANKED)


def test_the_command_prints_laws_forecasts_and_loops(queryprof: Run, recorded: Record) -> None:
    database = recorded("lines of sales, no index", 160)
    result = queryprof("lab", "grow", "x.qprof", "--db", database)
    assert result.returncode == 0, result.stderr
    for line in (
        "100 times the data",
        "1  SELECT thing_id FROM line WHERE sale_id = ?",
        "VM steps grow with the square of the data: ",
        "it runs once per row of SELECT id FROM sale",
        "planted.py:",
        "Measured on 1/8, 1/4, 1/2 and all of the rows.",
    ):
        assert line in result.stdout
    with closing(sqlite3.connect(database)) as con:
        con.execute("CREATE INDEX line_sale ON line (sale_id)")
    better = queryprof("lab", "grow", "x.qprof", "--db", database)
    assert "VM steps grow in proportion to sale" in better.stdout
    assert "square" not in better.stdout


def test_loops_that_rows_do_not_explain_are_named(queryprof: Run, recorded: Record) -> None:
    database = recorded("all pages", 80)
    result = queryprof("lab", "grow", "x.qprof", "--db", database)
    assert "1 statement ran several times, but not once per" in result.stdout


@pytest.mark.parametrize("name", ["x.qprof", "nothing.db"])
def test_bad_input_is_one_line(queryprof: Run, recorded: Record, name: str) -> None:
    recorded("newest", 20)
    result = queryprof("lab", "grow", "x.qprof", "--db", name)
    assert result.returncode == 2
    assert len(result.stderr.strip().splitlines()) == 1
