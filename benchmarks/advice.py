"""Compare measured index advice with the advice of the sqlite3 tool (`.expert`, run live).

Three programs of the tests and examples are recorded. The indexes of both are built on copies of
the database, and all recorded statements are measured there. The figure is the time that they would
take in the recorded run, weighted by their executions. `.expert` gets every measured statement, and
all its proposals are built.

    python benchmarks/advice.py
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from queryprof.analysis.report import Report
from queryprof.collect.reader import read_profile
from queryprof.model.advice import Advice
from queryprof.planner.judging import AFTER, BEFORE, Judge, StatementError
from queryprof.proof.accesses import Accesses
from queryprof.proof.index_search import ChangeSearch, has_index
from queryprof.proof.prove import prove
from queryprof.proof.schema import read_schema
from queryprof.proof.workload import recorded_queries

ROOT = Path(__file__).parent.parent
PROGRAMS = (
    ROOT / "examples" / "indexes" / "shop.py",
    ROOT / "tests" / "programs" / "advice" / "telemetry.py",
    ROOT / "tests" / "programs" / "advice" / "crm.py",
)
QUERYPROF = Path(sys.executable).with_name("queryprof")


def main() -> None:
    print(
        f"{'':12}{'before':>10}{'queryprof':>12}{'indexes':>9}{'advice':>9}  "
        f" {'.expert':>9}{'indexes':>9}{'unused':>8}"
    )
    for program in PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            database, trace = f"{folder}/program.db", f"{folder}/x.qprof"
            subprocess.run([sys.executable, program, database, "fill"], check=True)
            subprocess.run(
                [QUERYPROF, "run", "--parameters", "--no-report", "-o", trace, program, database],
                check=True,
            )
            report = Report(read_profile(trace))
            start_s = time.perf_counter()
            advice = prove(report, database)
            took_s = time.perf_counter() - start_s
            before, ours, _ = weighted_ms(
                report, database, [change.sql for change in advice.changes]
            )
            line = (
                f"{program.stem:12}{before:>7,.0f} ms{ours:>9,.1f}"
                f" ms{len(advice.changes):>9}{took_s:>7.1f} s"
            )
            if shutil.which("sqlite3"):
                proposals = expert(database, advice)
                _, theirs, unused = weighted_ms(report, database, proposals)
                line += f"   {theirs:>6,.0f} ms{len(proposals):>9}{unused:>8}"
            print(line, flush=True)


def expert(database: str, advice: Advice) -> list[str]:
    """Return all proposals of .expert for the measured statements."""
    found: dict[str, None] = {}
    for proof in advice.proofs:
        said = subprocess.run(
            ["sqlite3", "-readonly", database],
            input=f".expert\n{proof.statement};\n",
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        found |= dict.fromkeys(re.findall(r"^CREATE INDEX .*;$", said, re.MULTILINE))
    return list(found)


def weighted_ms(report: Report, database: str, changes: list[str]) -> tuple[float, float, int]:
    """Return the recorded executions' time before and after changes.

    The third value is the number of indexes that no plan uses.
    """
    with Judge() as judge:
        judge.copy_database(f"{Path(database).as_uri()}?mode=ro", BEFORE)
        judge.copy_database(BEFORE, AFTER)
        schema = read_schema(judge)
        accesses = Accesses(schema)
        search = ChangeSearch(judge, schema, recorded_queries(report, judge, schema, accesses))
        accesses.close()
        search.measure_all()
        made = []
        for change in changes:
            try:
                judge.execute(AFTER, change.rstrip(";"))
                made += re.findall(r"CREATE INDEX (\S+)", change)
            except StatementError as error:
                print(f"    not made: {change}: {error}")
        after = {query.statement: search.cost(query, AFTER) for query in search.queries}
        plans = [step for query in search.queries for step in search.plan(query, AFTER)]
        return (
            sum(query.executions * search.base_ns(query) for query in search.queries) / 1e6,
            sum(query.executions * after[query.statement] for query in search.queries) / 1e6,
            sum(not has_index(plans, index) for index in made),
        )


if __name__ == "__main__":
    main()
