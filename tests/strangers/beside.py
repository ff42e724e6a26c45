"""A program of the tests: change stores and recordings again and again, and report wrong commands.

It is started as `python beside.py ROOT FIRST LAST SEED [KIND]` and prints a line for each wrong case,
and a JSON object of how often each command ran. Each command is a fork of this process. Next to the
changed file there are good ones, which must be complete in each answer.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from strangers import commands, region_mutations, store_mutations

from queryprof.region import region_files

COMMANDS = (
    *("clean", "compact", "doctor", "export", "fleet", "fleet_export", "fleet_places", "merge"),
    *("questions", "report", "ship", "top"),
)
IMPORTED = (
    *(f"queryprof.cli.{name}" for name in (*COMMANDS, "progress", "reading", "ship_beside")),
    *(f"queryprof.fleet.{name}" for name in ("compaction", "comparison", "shipping")),
    *(f"queryprof.report.terminal.{name}" for name in ("console", "fleet", "report", "top")),
    *("queryprof.report.json.report", "queryprof.collect.given_traces", "queryprof.region.live"),
    *("pyarrow.compute", "encodings.ascii", "_strptime", "rich.progress", "rich.table"),
)
"""Modules that the commands need: once for all."""

HANG_S = 60
MOST_KB = 2_000_000
"""The most memory that a command may use: these files are small."""
GOOD = {"SELECT good FROM t WHERE a = ?", "SELECT ? AS good"}
STORED_CALLS, PARTS, REST, PLAIN = 400, (10, 20, 30), 5, 7
"""Executions of the good processes: in the store; in each part and then in the region; without
windows.
"""
EVERYWHERE = ("place", "shm")
MANY, GONE = 10**30, -1


class Step(NamedTuple):
    """A command of a case.

    Attributes:
        check: the check of its answer.
        statuses: its allowed exit statuses.
        may_change: where it may write, in addition to `out`.
    """

    arguments: list[str]
    check: Callable[[dict[str, Any]], str] = lambda _: ""
    statuses: tuple[int, ...] = (0, 1, 2)
    may_change: tuple[str, ...] = ("out",)


class Case(NamedTuple):
    """The changed file, and the commands for it.

    Attributes:
        inode: the number of the changed file; digest: the hash of its content.
    """

    how: str
    steps: list[Step]
    inode: int
    digest: str


def counted(found: int, wanted: int, most: int | None = None) -> str:
    is_right = wanted <= found <= (wanted if most is None else most)
    return "" if is_right else f"{found} of the good, not {wanted}"


def in_ranking(wanted: int, most: int | None = None) -> Callable[[dict[str, Any]], str]:
    """Count the calls of the good processes in the fleet's ranking."""

    def check(result: dict[str, Any]) -> str:
        if result["status"] == 2:
            return "no answer"
        rows = json.loads(result["shown"])
        found = sum(row["executions"] for row in rows if row["statement"] in GOOD)
        return counted(found, wanted, most)

    return check


def in_report(wanted: int, most: int | None = None) -> Callable[[dict[str, Any]], str]:
    """Count the executions of a report."""

    def check(result: dict[str, Any]) -> str:
        if result["status"] == 2:
            return "no answer"
        return counted(json.loads(result["shown"])["executions"], wanted, most)

    return check


def in_store(directory: str, wanted: int, most: int | None = None) -> Callable[[Any], str]:
    """Count the executions of the good processes in a directory of Parquet files."""

    def check(_: dict[str, Any]) -> str:
        import pyarrow.parquet as pq

        total = 0
        for folder, _, names in os.walk(f"{directory}/aggregate"):
            for name in names:
                file = pq.ParquetFile(os.path.join(folder, name))
                rows = file.read(["statement", "operation", "count"], use_threads=False)
                total += sum(
                    row["count"]
                    for row in rows.to_pylist()
                    if row["statement"] in GOOD and row["operation"] == "execute"
                )
        return counted(total, wanted, most)

    return check


def in_top(result: dict[str, Any]) -> str:
    """Look for the good process."""
    is_there = any("good.py" in str(one) for one in json.loads(result["shown"])["processes"])
    return "" if is_there else "the good process is not there"


def stored(draw: random.Random, case: Path) -> Case:
    """Return a store with one changed file."""
    shutil.copytree(case.parent / "recorded" / "store", case / "store")
    tables = {"aggregate": 5, "span": 1, "plan": 1, "finding": 1}
    (table,) = draw.choices([*tables], [*tables.values()])
    (path,) = (case / "store" / table).rglob("*-bad-*.parquet")
    before = names_of(case, path)
    how = store_mutations.parquet(draw, path)
    ranking = "fleet report store --by statement --format json".split()
    ranked = Step(ranking, in_ranking(STORED_CALLS), (0, 1))
    of_shop = ["store", "--where", "service=shop", *draw.choice([[], ["--format", "json"]])]
    asked = [
        Step(["fleet", "report", *of_shop, "--by", draw.choice(["few", "site", "host"])]),
        Step(["fleet", draw.choice(["plans", "findings", "trend", "outliers"]), *of_shop]),
        Step(["fleet", "compare", *draw.choice([("1", "2"), ("2", "1")]), *of_shop]),
        Step(["fleet", "report", *of_shop, "--during", "2026-01-01..2026-12-01"]),
    ]
    compact = Step(["fleet", "compact", "store"], may_change=("store",))
    how = f"{table} {how}"
    if draw.random() < 0.4:
        if draw.random() < 0.5:
            make_old(case / "store")
        return case_of(how, [compact, compact, ranked], case, before)
    asked = [one._replace(statuses=(0, 1)) for one in asked]
    return case_of(how, [draw.choice([*asked, ranked, ranked])], case, before)


def make_old(store: Path) -> None:
    """Make files a year older: compaction removes old ones."""
    for path in store.rglob("*"):
        with suppress(OSError):
            os.utime(path, (1_770_000_000, 1_770_000_000), follow_symlinks=False)


def recorded(draw: random.Random, case: Path) -> Case:
    """Return recordings with one changed file."""
    source, maps = case.parent / "recorded", []
    (case / "place").mkdir()
    (case / "shm").mkdir()
    kinds = ["part", "own", "copy", "left", "plain", "running"]
    kind = draw.choice(kinds)
    for name in ("place", "shm"):
        for path in sorted((source / name).iterdir()):
            if not path.name.startswith("bad"):
                region_mutations.copy_region(path, case / name / path.name)
    path = source_of(kind, draw, source, case)
    for region in case.joinpath("shm").iterdir():
        if "-running" in region.name:
            region_mutations.live(
                region, os.getpid(), region_files.process_start_ticks(os.getpid())
            )
    before = names_of(case, path)
    how = f"{kind} {region_mutations.region(draw, path, case)}"
    for region in [*case.joinpath("shm").iterdir(), path]:
        if "-running" in region.name and region.is_file() and region.stat().st_size:
            with region.open("rb") as file:
                maps.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    _mapped[:] = maps
    whole = sum(PARTS) + REST
    least = whole - sum(PARTS) + 10 if kind == "own" else whole
    is_named = " name: " in how or "trace = " in how  # as a part of the good one
    most = MANY if kind == "own" or is_named else None
    return case_of(how, steps_of(draw, kind, whole, least, most), case, before)


_mapped: list[mmap.mmap] = []
"""The memory of the running processes: this process maps it."""


def source_of(kind: str, draw: random.Random, source: Path, case: Path) -> Path:
    """Put the file that is to be changed in its place, and return its path."""
    if kind == "own":
        return draw.choice(sorted(case.glob("place/good.qprof.*.live")))
    if kind == "part":
        (path,) = source.glob("place/bad.qprof.*-1.live")
        target = case / "place" / path.name
    else:
        (path,) = source.glob(f"shm/bad {'left' if kind == 'copy' else kind} *")
        name = path.name.split(" ")[-1]
        copy = f"place/bad.qprof.{name.split('-')[-2]}.abcdef.live"
        target = case / (copy if kind == "copy" else f"shm/{name}")
    region_mutations.copy_region(path, target)
    return target


def names_of(case: Path, but: Path) -> set[str]:
    """Return the paths below a directory, except one."""
    return {str(path) for path in case.rglob("*")} - {str(but)}


def case_of(how: str, steps: list[Step], case: Path, before: set[str]) -> Case:
    """Return a case whose changed file is the one that did not exist before."""
    new = [path for path in case.rglob("*") if str(path) not in before]
    (path,) = [one for one in new if not one.is_dir() or one.is_symlink()][:1] or new[:1]
    return Case(how, steps, path.lstat().st_ino, commands.digest(path))


def steps_of(
    draw: random.Random, kind: str, whole: int, least: int, most: int | None
) -> list[Step]:
    """Return the commands on recordings."""
    good, bad, plain = "place/good.qprof", "place/bad.qprof", "place/plain.qprof"
    in_json = ("--format", "json")
    reports = [
        Step(["report", good, *in_json], in_report(least, most), may_change=EVERYWHERE),
        Step(["report", plain, *in_json], in_report(PLAIN), may_change=EVERYWHERE),
    ]
    parquet = ["fleet", "export", "-o", "out/e"]
    merge = Step(["merge", "out/m.qprof", good, plain], may_change=EVERYWHERE)
    merged = Step(["report", "out/m.qprof", *in_json], in_report(PLAIN + least, most))
    ranking = ["fleet", "report", good, plain, "--by", "statement", *in_json]
    stored = in_store("out/s", least, most)
    exported = in_store("out/e", PLAIN + least, most)
    ship = [
        Step(["fleet", "ship", "--once", "--to", "out/s", "place"], stored, may_change=EVERYWHERE)
    ]
    return draw.choice(
        [
            ship,
            ship,
            [*ship, *ship],
            [Step(["top", "--once", "--format", "json", "--every", "50ms"], in_top)],
            [Step(["top", "--once", "--every", "50ms", *draw.choice([[], ["place"]])])],
            [Step(["doctor", "--clean"], may_change=EVERYWHERE), *reports],
            reports,
            [Step(["report", bad, *draw.choice([[], in_json])], may_change=EVERYWHERE), reports[0]],
            [Step([*parquet, "place"], exported, may_change=EVERYWHERE)],
            [Step([*parquet, good, bad, plain], exported, may_change=EVERYWHERE)],
            [Step(["export", "--format", "speedscope", "-o", "-", bad], may_change=EVERYWHERE)],
            [Step(ranking, in_ranking(PLAIN + least, most), may_change=EVERYWHERE)],
            [Step(["fleet", "report", bad], may_change=EVERYWHERE)],
            [merge, merged],
        ]
    )


def fate(case: Path, changed: Case, step: Step, result: dict[str, Any], before: set[str]) -> str:
    """Look for the changed file under any name, or for its content in an answer."""
    paths = [path for path in case.rglob("*") if not path.is_relative_to(case / "out")]
    is_there = changed.inode in {GONE, *(path.lstat().st_ino for path in paths)}
    if is_there or (changed.digest and changed.digest in map(commands.digest, paths)):
        return ""
    result["gone"] = True
    command = step.arguments[0]
    if "ship" in step.arguments[:2]:
        sent = re.search(r"([0-9,]+) windows? sent", result["message"])
        least = len(PARTS) + ("own" not in changed.how)
        is_taken = sent is not None and int(sent[1].replace(",", "")) > least
    elif step.arguments[:2] == ["fleet", "compact"]:
        is_taken = bool(days_of(case / "store"))
    else:
        made = {path.name for path in case.rglob("*")} - before - {"plain.qprof"}
        is_taken = command == "doctor" or any(not name.endswith(".live") for name in made)
    return "" if is_taken else "it is gone"


def days_of(store: Path) -> list[Path]:
    """Return the files of days that have the rows of the changed file."""
    import pyarrow.parquet as pq

    found = []
    for path in store.rglob("day-*.parquet"):
        with suppress(Exception):
            sources = (pq.read_schema(path).metadata or {})[b"queryprof.sources"]
            if any(name.partition("-")[2][:4] == "bad-" for name in json.loads(sources)):
                found.append(path)
    return found


def in_fork(case: Path, changed: Case, step: Step) -> dict[str, Any]:
    """Run a command in a child of this process. Return its actions and its errors."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            os.close(reading)
            commands.HANG_S = HANG_S
            before = {path.name for path in case.rglob("*")}
            result = commands.run(case, step.arguments, tempfile.gettempdir(), step.may_change)
            wrong = ["status"] * (result["status"] not in step.statuses)
            wrong += ["lines"] * ("Traceback" in result["message"])
            wrong += [name for name in ("written", "changed", "left") if result[name]]
            if not wrong:
                wrong += [step.check(result), fate(case, changed, step, result, before)]
            result["wrong"] = [one for one in wrong if one]
            result["shown"] = result["shown"][:300] if result["wrong"] else ""
            with open(writing, "w", closefd=False) as file:
                json.dump(result, file)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading) as file:
        answer = file.read()
    _, code, used = os.wait4(pid, 0)
    if code or not answer:
        return {"wrong": [f"ended with {os.waitstatus_to_exitcode(code)}"]}
    result: dict[str, Any] = json.loads(answer)
    if used.ru_maxrss > MOST_KB:
        result["wrong"].append(f"took {used.ru_maxrss:,} kB")
    return result


KINDS = {"store": stored, "recording": recorded}


def main(root: Path, first: int, last: int, seed: str, *kinds: str) -> None:
    """Run the cases with these numbers."""
    for name in IMPORTED:
        import_module(name)
    faulthandler.enable()
    sys.addaudithook(commands.watch)
    case = root / "case"
    region_files.SHARED_MEMORY = str(case / "shm")
    os.environ.pop("XDG_RUNTIME_DIR", None)
    ran: Counter[str] = Counter()
    for number in range(first, last):
        kind = (kinds or ("recording", "store", "recording"))[number % (len(kinds) or 3)]
        draw = random.Random(f"{seed} {kind} {number}")
        shutil.rmtree(case, ignore_errors=True)
        case.joinpath("out").mkdir(parents=True)
        changed = KINDS[kind](draw, case)
        for step in changed.steps:
            result = in_fork(case, changed, step)
            changed = changed._replace(inode=GONE) if result.get("gone") else changed
            ran[" ".join(step.arguments[: 1 + (step.arguments[1:2] == ["compact"])])] += 1
            if result["wrong"]:
                which = f"{kind} {number} of {seed}: {changed.how}"
                print(f"{which} | {' '.join(step.arguments)}: {result}", flush=True)
                break
    print(json.dumps({"cases": last - first, **ran}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
