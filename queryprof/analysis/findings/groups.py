"""What is known of one statement at one call site: the facts that findings are made from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from queryprof.analysis.call_sites import CallSite, Function, call_site
from queryprof.analysis.files import Files, Place, place_of
from queryprof.analysis.marks import Mark, mark_of
from queryprof.analysis.plans import Steps, plans_by_statement
from queryprof.analysis.totals import Totals, add_up
from queryprof.model import Aggregate, CallPath, Profile

SEARCHED = 4000
"""Characters of a statement."""

READS = frozenset({"SELECT", "WITH", "VALUES"})
WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE"})


@dataclass
class Group:
    """One statement at one call site.

    Attributes:
        paths: its call paths with the executions of each.
        plans: of the statement; empty: unknown.
        samples, repeats: executions whose parameters were looked at, and those that were a repeat.
        texts: different texts of the statement, at the least, from all call sites.
    """

    statement: str
    site: CallSite
    share: float
    members: list[Aggregate]
    files: Files = field(default_factory=Files)
    plans: tuple[Steps, ...] = ()
    samples: int = 0
    repeats: int = 0
    texts: int = 1

    @property
    def sql(self) -> str:
        """The statement, as far as it is searched for patterns."""
        return self.statement[:SEARCHED]

    @cached_property
    def totals(self) -> Totals:
        return add_up(self.members)

    @cached_property
    def mark(self) -> Mark | None:
        return mark_of(self.statement, self.plans, self.totals, self.share)

    @cached_property
    def verb(self) -> str:
        """The statement's first word, in capitals."""
        found = re.match(r"\s*(\w+)", self.statement)
        return found[1].upper() if found else ""

    @property
    def reads(self) -> bool:
        return self.verb in READS

    @property
    def writes(self) -> bool:
        return self.verb in WRITES

    @cached_property
    def calls_of(self) -> Mapping[str, int]:
        """Calls by operation."""
        found: dict[str, int] = {}
        for member in self.members:
            found[member.operation] = found.get(member.operation, 0) + member.count
        return found

    @cached_property
    def executions_outside(self) -> int:
        """Executions outside of any span."""
        return add_up(member for member in self.members if not member.span).executions

    @cached_property
    def path(self) -> CallPath:
        """The call path that it took most time from."""
        return max(self.members, key=lambda member: member.self_ns).path

    @property
    def function(self) -> Function | None:
        frame = self.site.frame
        return (frame.file, frame.function) if frame else None


def groups_of(
    profile: Profile, helpers: frozenset[Function], files: Mapping[tuple[str, Place], Files]
) -> tuple[Group, ...]:
    """The groups of a profile, those that take most time first."""
    sites: dict[CallPath, CallSite] = {}

    def site_of(path: CallPath) -> CallSite:
        found = sites.get(path)
        if found is None:
            found = sites[path] = call_site(path, helpers)
        return found

    database_ns = sum(aggregate.self_ns for aggregate in profile.aggregates) or 1
    members: dict[tuple[str, Place], list[Aggregate]] = {}
    for aggregate in profile.aggregates:
        key = (aggregate.statement, place_of(site_of(aggregate.path).frame))
        members.setdefault(key, []).append(aggregate)
    plans = plans_by_statement(profile.plans)
    groups = {
        key: Group(
            key[0],
            site_of(max(found, key=lambda a: a.self_ns).path),
            sum(a.self_ns for a in found) / database_ns,
            found,
            files.get(key, Files()),
            plans=plans.get(key[0], ()),
            texts=profile.texts.get(key[0], 1),
        )
        for key, found in members.items()
        if any(a.count for a in found)
    }
    for sample in profile.parameters:
        group = groups.get((sample.statement, place_of(site_of(sample.path).frame)))
        if group:
            group.samples += sample.samples
            group.repeats += sample.repeats
    return tuple(sorted(groups.values(), key=lambda group: -group.share))


def in_function(groups: Iterable[Group], function: Function | None) -> list[Group]:
    """The groups whose call site is in a function."""
    return [group for group in groups if function and group.function == function]
