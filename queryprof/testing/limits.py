"""The limits of a block: how much of the database's work it may take.

None of them hangs on how fast the machine is but those in milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from itertools import pairwise
from math import inf

from queryprof.analysis.baseline_figures import OTHER, UNKNOWN, Figures, TestFigures, count_queries
from queryprof.analysis.plans import signs_of
from queryprof.analysis.units import count
from queryprof.report.text.failures import Excess, budget_message, lock_message, stall_message
from queryprof.sql.tokens import tokens_of
from queryprof.testing.calls import Calls
from queryprof.testing.seq_scans import seq_scans

PLAN = re.compile(r"no (full scan|sort|automatic index|seq scan)(?: of (.+))?")
PLANS = (
    "'no full scan', 'no full scan of TABLE', 'no sort', 'no automatic index', 'no seq scan',"
    " 'no seq scan of TABLE'"
)

READ = re.compile(r"(?:SCAN|SEARCH) (.+?)(?: (?:USING|VIRTUAL TABLE) .*| \(.*)?$")
"""What a step of a plan reads."""

NUMBERS = (
    "queries",
    "repeats",
    "rows",
    "vm_steps",
    "lock_wait_ms",
    "transaction_ms",
    "stall_ms",
)


OF_FIGURES = ("queries", "repeats", "rows", "vm_steps", "plans", "no_full_scans")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a block may do at the most; None: it is not limited.

    Attributes:
        queries: executions of statements; repeats: those of one statement from one line.
        rows: that all statements return or change.
        vm_steps: that they take (SQLite's count of its work).
        plans: what no plan may have: "no full scan of orders"; several are a list.
        no_full_scans: no execution may scan 1,000 rows of a table or more.
        lock_wait_ms, transaction_ms: how long a call may wait for a lock of a database file, and
            the write lock of one may be held.
        stall_ms: how long an event loop may be blocked.

    Raises:
        TypeError, ValueError: a value is none.
    """

    queries: int | None = None
    repeats: int | None = None
    rows: int | None = None
    vm_steps: int | None = None
    plans: str | Iterable[str] | None = None
    no_full_scans: bool = False
    lock_wait_ms: float | None = None
    transaction_ms: float | None = None
    stall_ms: float | None = None

    def __post_init__(self) -> None:
        for name in NUMBERS:
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(f"{name}: is a number, not {value!r}")
            if not 0 <= value < inf:
                raise ValueError(f"{name}: is 0 or more, not {value!r}")
        if not isinstance(self.no_full_scans, bool):
            raise TypeError(f"no_full_scans: is True or False, not {self.no_full_scans!r}")
        if not isinstance(self.plans, str | list | tuple | set | frozenset | None):
            raise TypeError(f"plans: is a text, or a list of them, not {self.plans!r}")
        if self.plans is not None and not self.plan_rules:
            raise ValueError(f"plans: names nothing: must be of {PLANS}")
        for rule in self.plan_rules:
            found = PLAN.fullmatch(rule)
            is_of_tables = bool(found and found[2])
            if not found or (
                is_of_tables and (found[1] not in ("full scan", "seq scan") or not _names(found[2]))
            ):
                raise ValueError(f"plans: {rule!r}: must be of {PLANS}")

    @property
    def plan_rules(self) -> tuple[str, ...]:
        if self.plans is None:
            return ()
        return (self.plans,) if isinstance(self.plans, str) else tuple(self.plans)

    @property
    def is_of_plans(self) -> bool:
        return bool(self.plan_rules) or self.no_full_scans


NAMES = tuple(field.name for field in fields(Limits))


def exceeded(limits: Limits, calls: Calls, prefix: str = "") -> str:
    """What exceeds the limits, with the statements and their lines; "": nothing.

    Args:
        prefix: of the limits' names, where they are called otherwise ("max_").
    """
    found = list(_by_figures(limits, calls, prefix))
    if found:
        return budget_message(found)
    for kind, name in (("wait", "lock_wait_ms"), ("hold", "transaction_ms")):
        most = getattr(limits, name)
        times = calls.locks_longer_than(kind, most) if most is not None else ()
        if times:
            return lock_message(f"{prefix}{name}={most}", times)
    stalls = calls.longer_than(limits.stall_ms) if limits.stall_ms is not None else ()
    return stall_message(f"{prefix}stall_ms={limits.stall_ms}", stalls) if stalls else ""


def _by_figures(limits: Limits, calls: Calls, prefix: str) -> Iterable[Excess]:
    figures = calls.figures()
    if OTHER in figures and any(getattr(limits, name) not in (None, False) for name in OF_FIGURES):
        yield Excess("more different statements than are kept apart: limits cannot be checked", {})
    yield from _counted(limits, figures, prefix)
    if limits.vm_steps is not None:
        yield from _steps(limits.vm_steps, figures, prefix)
    if limits.no_full_scans:
        over = _chosen(figures, lambda one: one.scans_a_large_table)
        if over:
            yield Excess("scans of large tables, no_full_scans", over, "plans")
    for rule in limits.plan_rules:
        yield from _plans(rule, figures)


def _counted(limits: Limits, figures: TestFigures, prefix: str) -> Iterable[Excess]:
    queries = count_queries(figures)
    if limits.queries is not None and queries > limits.queries:
        yield Excess(f"{count(queries)} queries, {prefix}queries={limits.queries}", figures)
    if limits.repeats is not None:
        over = _chosen(figures, lambda one: one.repeats > (limits.repeats or 0))
        if over:
            yield Excess(f"repeated from one line, {prefix}repeats={limits.repeats}", over)
    if limits.rows is not None:
        rows = sum(one.rows for one in figures.values())
        over = _chosen(figures, lambda one: one.rows > 0)
        if rows > limits.rows:
            yield Excess(f"{count(rows)} rows, {prefix}rows={limits.rows}", over, "rows")


def _chosen(figures: TestFigures, is_chosen: Callable[[Figures], bool]) -> dict[str, Figures]:
    return {statement: one for statement, one in figures.items() if is_chosen(one)}


def _steps(most: int, figures: TestFigures, prefix: str) -> Iterable[Excess]:
    unknown = _chosen(figures, lambda one: one.vm_steps is None and one.executions + one.rows > 0)
    if unknown:
        reason = f"VM steps are not known, so that {prefix}vm_steps={most} cannot be checked"
        yield Excess(reason, unknown)
    steps = sum(one.vm_steps or 0 for one in figures.values())
    if steps > most:
        some = _chosen(figures, lambda one: bool(one.vm_steps))
        yield Excess(f"{count(steps)} VM steps, {prefix}vm_steps={most}", some, "vm_steps")


def _plans(rule: str, figures: TestFigures) -> Iterable[Excess]:
    matched = PLAN.fullmatch(rule)
    assert matched is not None
    kind, tables = matched[1], _names(matched[2])
    if kind == "seq scan":
        yield from seq_scans(rule, tables, {s: one for s, one in figures.items() if _has_plan(s)})
        return
    over = {s: one for s, one in figures.items() if _has(kind, tables, s, one)}
    unknown = {
        s: one for s, one in figures.items() if not one.plans and (s == UNKNOWN or _has_plan(s))
    }
    if over:
        yield Excess(f"plans {rule!r}", over, "plans")
    if unknown:
        yield Excess(f"plans are not known, so that {rule!r} cannot be checked", unknown)
    missing = sorted(tables - _mentioned(figures))
    if missing and figures:
        reason = f"plans {rule!r} checks nothing: no statement is about {', '.join(missing)}"
        yield Excess(reason, figures)


def _names(text: str | None) -> frozenset[str]:
    names = (name.strip().strip('"`[]').lower() for name in (text or "").split(","))
    return frozenset(filter(None, names))


def _mentioned(figures: TestFigures) -> frozenset[str]:
    """The names in the statements, and of what their plans read (a view has tables of its own)."""
    named = {token.named for statement in figures for token in tokens_of(statement)}
    steps = (step for one in figures.values() for plan in one.plans for step in plan)
    read = {found[1].lower() for step in steps if (found := READ.match(step.strip()))}
    return frozenset(named | read | {name.rpartition(".")[2] for name in read})


def _has(kind: str, tables: frozenset[str], statement: str, one: Figures) -> bool:
    """Whether a plan of a statement has what it may not have."""
    before = _names_before(statement)
    for plan in one.plans:
        signs = signs_of(plan)
        if kind == "sort" and signs.temporary:
            return True
        if kind == "automatic index" and signs.automatic_indexes:
            return True
        scanned = {name.lower() for name in signs.scans} if kind == "full scan" else set()
        scanned |= {name.rpartition(".")[2] for name in scanned}  # of an attached database
        scanned |= {other for name in scanned for other in before.get(name, ())}
        if scanned and (not tables or scanned & tables):
            return True
    return False


def _names_before(statement: str) -> dict[str, set[str]]:
    """By a name: the words before it, one of which is that of its table where it is another name
    for one (FROM orders AS o).
    """
    found: dict[str, set[str]] = {}
    tokens = [token.named for token in tokens_of(statement) if token.keyword != "AS"]
    for first, second in pairwise(tokens):
        if first and second:
            found.setdefault(second, set()).add(first)
    return found


def _has_plan(statement: str) -> bool:
    """Whether SQLite plans such a statement: INSERT ... VALUES and DELETE without WHERE look for
    nothing, and others are no queries.
    """
    words = {token.keyword for token in tokens_of(statement)}
    first = next((token.keyword for token in tokens_of(statement) if token.keyword), "")
    if first in ("SELECT", "WITH", "UPDATE"):
        return True
    return (first == "DELETE" and "WHERE" in words) or (
        first in ("INSERT", "REPLACE") and "SELECT" in words
    )


def limits_of(values: Mapping[str, object], prefix: str = "") -> Limits:
    """The limits of these names and values.

    Raises:
        TypeError, ValueError: one is no limit, or no value of one.
    """
    known = {f"{prefix}{name}" if name in NUMBERS else name: name for name in NAMES}
    names = ", ".join(sorted(known))
    for name in values:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise TypeError(f"{name} is no budget{hint}; there are {names}, each by name")
    return Limits(**{known[name]: value for name, value in values.items()})  # type: ignore[arg-type]
