"""Handmade profiles of statements that a library executes in a line of the program."""

from __future__ import annotations

from dataclasses import replace

from analysis.by_hand import MAIN, QUERY, aggregate, profile_of

from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.findings.finding import Finding
from queryprof.model import Aggregate, Frame, LineTime, Profile, StackSample

MS = 1_000_000
SITE = (QUERY, MAIN)
READ = "SELECT a, c FROM t WHERE b = ?"
WRITE = "INSERT INTO t VALUES (?)"
PEEWEE = Frame("get", "/venv/site-packages/peewee.py", 1, "library")


def profile(*loops: tuple[Aggregate, LineTime | None]) -> Profile:
    """Return a profile of statements that peewee executes."""
    stacks = [StackSample(one.statement, (PEEWEE, *one.path), 64, one.self_ns) for one, _ in loops]
    return replace(
        profile_of(*(one for one, _ in loops)),
        line_times=tuple(time for _, time in loops if time),
        stack_samples=tuple(stacks),
    )


def loop(
    statement: str,
    passes: int,
    executions: int,
    others: int = 0,
    pass_ns: int = 2 * MS,
    count: int = 100,
) -> tuple[Aggregate, LineTime]:
    """Return a loop of executions that take 10 us each."""
    driver = aggregate(statement, SITE, ns=count * 10_000, count=count)
    return driver, LineTime(statement, SITE, passes, executions, others, passes * pass_ns)


def findings(profile: Profile, is_loop: bool = True) -> tuple[Finding, ...]:
    return find_all(
        Report(profile), lambda frame, _: replace(frame, line=1) if is_loop else None, {}
    )


def only(profile: Profile) -> Finding:
    (found,) = findings(profile)
    return found
