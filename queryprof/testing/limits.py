"""The limits of a block: how much database work it may do.

Only the limits in milliseconds depend on the speed of the machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from itertools import pairwise
from math import inf

from queryprof.analysis.plans import plan_signs
from queryprof.analysis.units import count
from queryprof.comparing.baseline_figures import (
    OTHER,
    UNKNOWN,
    StatementFigures,
    TestFigures,
    count_queries,
)
from queryprof.report.text.failures import (
    ExceededLimit,
    limit_message,
    lock_message,
    stall_message,
)
from queryprof.sql.tokens import tokens_of
from queryprof.testing.calls import Calls
from queryprof.testing.seq_scans import seq_scans

PLAN = re.compile(r"no (full scan|sort|automatic index|seq scan)(?: of (.+))?")
PLANS = (
    "'no full scan', 'no full scan of TABLE', 'no sort', 'no automatic index', 'no seq scan',"
    " 'no seq scan of TABLE'"
)

READ = re.compile(r"(?:SCAN|SEARCH) (.+?)(?: (?:USING|VIRTUAL TABLE) .*| \(.*)?$")
"""Matches the table that a step of a plan reads."""

NUMBERS = (
    "queries",
    "repeats",
    "rows",
    "vm_steps",
    "lock_wait_ms",
    "transaction_ms",
    "stall_ms",
)


COUNT_LIMITS = ("queries", "repeats", "rows", "vm_steps", "plans", "no_full_scans")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a block. None means no limit.

    Attributes:
        queries: executions of statements.
        repeats: executions of one statement from one line.
        rows: rows that all statements return or change.
        vm_steps: SQLite's count of its work.
        plans: what no plan may contain, such as "no full scan of orders"; a list for several.
        no_full_scans: no execution may scan 1,000 or more rows of a table.
        lock_wait_ms: how long a call may wait for a lock on a database file.
        transaction_ms: how long the write lock of a file may be held.
        stall_ms: how long an event loop may be blocked.

    Raises:
        TypeError, ValueError: a value is invalid.
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
                raise TypeError(f"{name}: must be a number, not {value!r}")
            if not 0 <= value < inf:
                raise ValueError(f"{name}: must be 0 or more, not {value!r}")
        if not isinstance(self.no_full_scans, bool):
            raise TypeError(f"no_full_scans: must be True or False, not {self.no_full_scans!r}")
        if not isinstance(self.plans, str | list | tuple | set | frozenset | None):
            raise TypeError(f"plans: must be a string or a list of strings, not {self.plans!r}")
        if self.plans is not None and not self.plan_rules:
            raise ValueError(f"plans: empty; choose from {PLANS}")
        for rule in self.plan_rules:
            found = PLAN.fullmatch(rule)
            is_of_tables = bool(found and found[2])
            if not found or (
                is_of_tables
                and (found[1] not in ("full scan", "seq scan") or not _table_names(found[2]))
            ):
                raise ValueError(f"plans: unknown {rule!r}; choose from {PLANS}")

    @property
    def plan_rules(self) -> tuple[str, ...]:
        if self.plans is None:
            return ()
        return (self.plans,) if isinstance(self.plans, str) else tuple(self.plans)

    @property
    def is_of_plans(self) -> bool:
        return bool(self.plan_rules) or self.no_full_scans


NAMES = tuple(field.name for field in fields(Limits))


def excess_of_limits(limits: Limits, calls: Calls, prefix: str = "") -> str:
    """Return a message about the exceeded limits, with the statements and their lines; "" if no
    limit is exceeded.

    Args:
        prefix: prefix of the limits' names in the message ("max_").
    """
    found = list(_by_figures(limits, calls, prefix))
    if found:
        return limit_message(found)
    for kind, name in (("wait", "lock_wait_ms"), ("hold", "transaction_ms")):
        most = getattr(limits, name)
        times = calls.locks_longer_than(kind, most) if most is not None else ()
        if times:
            return lock_message(f"{prefix}{name}={most}", times)
    stalls = calls.longer_than(limits.stall_ms) if limits.stall_ms is not None else ()
    return stall_message(f"{prefix}stall_ms={limits.stall_ms}", stalls) if stalls else ""


def _by_figures(limits: Limits, calls: Calls, prefix: str) -> Iterable[ExceededLimit]:
    figures = calls.figures()
    if OTHER in figures and any(
        getattr(limits, name) not in (None, False) for name in COUNT_LIMITS
    ):
        yield ExceededLimit("too many different statements: limits cannot be checked", {})
    yield from _exceeded_counts(limits, figures, prefix)
    if limits.vm_steps is not None:
        yield from _excess_of_steps(limits.vm_steps, figures, prefix)
    if limits.no_full_scans:
        over = _select(figures, lambda one: one.scans_a_large_table)
        if over:
            yield ExceededLimit("scans of large tables, no_full_scans", over, "plans")
    for rule in limits.plan_rules:
        yield from _plans(rule, figures)


def _exceeded_counts(limits: Limits, figures: TestFigures, prefix: str) -> Iterable[ExceededLimit]:
    queries = count_queries(figures)
    if limits.queries is not None and queries > limits.queries:
        yield ExceededLimit(f"{count(queries)} queries, {prefix}queries={limits.queries}", figures)
    if limits.repeats is not None:
        over = _select(figures, lambda one: one.repeats > (limits.repeats or 0))
        if over:
            yield ExceededLimit(f"repeated from one line, {prefix}repeats={limits.repeats}", over)
    if limits.rows is not None:
        rows = sum(one.rows for one in figures.values())
        over = _select(figures, lambda one: one.rows > 0)
        if rows > limits.rows:
            yield ExceededLimit(f"{count(rows)} rows, {prefix}rows={limits.rows}", over, "rows")


def _select(
    figures: TestFigures, is_chosen: Callable[[StatementFigures], bool]
) -> dict[str, StatementFigures]:
    return {statement: one for statement, one in figures.items() if is_chosen(one)}


def _excess_of_steps(most: int, figures: TestFigures, prefix: str) -> Iterable[ExceededLimit]:
    unknown = _select(figures, lambda one: one.vm_steps is None and one.executions + one.rows > 0)
    if unknown:
        reason = f"VM steps are unknown, so {prefix}vm_steps={most} cannot be checked"
        yield ExceededLimit(reason, unknown)
    steps = sum(one.vm_steps or 0 for one in figures.values())
    if steps > most:
        some = _select(figures, lambda one: bool(one.vm_steps))
        yield ExceededLimit(f"{count(steps)} VM steps, {prefix}vm_steps={most}", some, "vm_steps")


def _plans(rule: str, figures: TestFigures) -> Iterable[ExceededLimit]:
    matched = PLAN.fullmatch(rule)
    assert matched is not None
    kind, tables = matched[1], _table_names(matched[2])
    if kind == "seq scan":
        yield from seq_scans(rule, tables, {s: one for s, one in figures.items() if _has_plan(s)})
        return
    over = {s: one for s, one in figures.items() if _has_forbidden_step(kind, tables, s, one)}
    unknown = {
        s: one for s, one in figures.items() if not one.plans and (s == UNKNOWN or _has_plan(s))
    }
    if over:
        yield ExceededLimit(f"plans {rule!r}", over, "plans")
    if unknown:
        yield ExceededLimit(f"plans are unknown, so {rule!r} cannot be checked", unknown)
    missing = sorted(tables - _mentioned_names(figures))
    if missing and figures:
        reason = f"plans {rule!r} checks nothing: no statement uses {', '.join(missing)}"
        yield ExceededLimit(reason, figures)


def _table_names(text: str | None) -> frozenset[str]:
    names = (name.strip().strip('"`[]').lower() for name in (text or "").split(","))
    return frozenset(filter(None, names))


def _mentioned_names(figures: TestFigures) -> frozenset[str]:
    """Return the names in the statements and in their plans. Plans show the tables behind a
    view.
    """
    named = {token.named for statement in figures for token in tokens_of(statement)}
    steps = (step for one in figures.values() for plan in one.plans for step in plan)
    read = {found[1].lower() for step in steps if (found := READ.match(step.strip()))}
    return frozenset(named | read | {name.rpartition(".")[2] for name in read})


def _has_forbidden_step(
    kind: str, tables: frozenset[str], statement: str, one: StatementFigures
) -> bool:
    """Return whether a plan of a statement contains the step that a limit excludes."""
    before = _names_before(statement)
    for plan in one.plans:
        signs = plan_signs(plan)
        if kind == "sort" and signs.temporary:
            return True
        if kind == "automatic index" and signs.automatic_indexes:
            return True
        scanned = {name.lower() for name in signs.scans} if kind == "full scan" else set()
        # removes the schema name of an attached database
        scanned |= {name.rpartition(".")[2] for name in scanned}
        scanned |= {other for name in scanned for other in before.get(name, ())}
        if scanned and (not tables or scanned & tables):
            return True
    return False


def _names_before(statement: str) -> dict[str, set[str]]:
    """Return the words before each name. If a name is an alias, as in FROM orders AS o, one of its
    words is the table.
    """
    found: dict[str, set[str]] = {}
    tokens = [token.named for token in tokens_of(statement) if token.keyword != "AS"]
    for first, second in pairwise(tokens):
        if first and second:
            found.setdefault(second, set()).add(first)
    return found


def _has_plan(statement: str) -> bool:
    """Return whether SQLite makes a plan for a statement.

    INSERT ... VALUES, DELETE without WHERE and other commands have no plan.
    """
    words = {token.keyword for token in tokens_of(statement)}
    first = next((token.keyword for token in tokens_of(statement) if token.keyword), "")
    if first in ("SELECT", "WITH", "UPDATE"):
        return True
    return (first == "DELETE" and "WHERE" in words) or (
        first in ("INSERT", "REPLACE") and "SELECT" in words
    )


def limits_of(values: Mapping[str, object], prefix: str = "") -> Limits:
    """Return the limits with these names and values.

    Raises:
        TypeError, ValueError: a name is unknown, or a value is invalid.
    """
    known = {f"{prefix}{name}" if name in NUMBERS else name: name for name in NAMES}
    names = ", ".join(sorted(known))
    for name in values:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise TypeError(f"{name} is not a limit{hint}; the limits are {names}")
    return Limits(**{known[name]: value for name, value in values.items()})  # type: ignore[arg-type]
