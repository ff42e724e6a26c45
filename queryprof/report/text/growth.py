"""Failure messages of code whose database work grows too fast with the data."""

from __future__ import annotations

from queryprof.analysis.units import shorten
from queryprof.growth.growths import ALL, Growth
from queryprof.growth.law import Law
from queryprof.report.text.causes import cut_statement, site_lines
from queryprof.report.text.failures import MAX_SITES, MAX_STATEMENTS, join_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TIMES = ("", "once", "twice", "3 times", "4 times")
POWERS = {2.0: "the square of", 3.0: "the cube of"}
MAX_TABLES = 4


def growth_message(found: Mapping[str, Sequence[Growth]], most: float) -> str:
    """Return a message about statements that grow too fast; "" if there are none.

    Args:
        found: the growths above the limit, by the parameter of populate() that got larger.
        most: the limit.
    """
    by_name = {name: some for name, some in found.items() if some}
    if not by_name:
        return ""
    name, first = next((name, some[0]) for name, some in by_name.items())
    blocks = [[f"grows too fast, max_growth={most:g}: {_summary(first, name)}"]]
    for varied, some in by_name.items():
        is_only = len(found) == 1
        blocks += [list(_growth_lines(one, varied, is_only)) for one in some[:MAX_STATEMENTS]]
        if len(some) > MAX_STATEMENTS:
            blocks.append([f"  ... and {len(some) - MAX_STATEMENTS} more statements"])
    if len(found) == 1 and any(len(one.tables) > 1 for one in by_name[name]):
        blocks.append([_together(by_name[name])])
    return join_parts(*blocks)


def growth_in_words(verb: str, law: Law, of: str) -> str:
    """Return how a figure grows with `of`: "grow with the square of orders"."""
    logarithm = " and a logarithm" * law.has_log
    if law.is_constant:
        return f"do not {verb} with {of}"
    if not law.exponent:
        return f"{verb} with the logarithm of {of}"
    if law.exponent == 1:
        return f"{verb} with n log n of {of}" if law.has_log else f"{verb} in proportion to {of}"
    power = POWERS.get(law.exponent, f"power {law.exponent:.2f} of")
    return f"{verb} with {power} {of}{logarithm}"


def _summary(one: Growth, varied: str) -> str:
    return f"{one.figure} {growth_in_words('grow', one.law, _table(one, varied))}"


def _table(one: Growth, varied: str) -> str:
    """Return the only table with which the figure grows, or else the varied parameter."""
    return one.tables[0] if len(one.tables) == 1 else varied


def _growth_lines(one: Growth, varied: str, is_only: bool) -> Iterator[str]:
    yield f"  {'All statements together' if one.statement == ALL else cut_statement(one.statement)}"
    values = ", ".join(f"{value:,}" for value in one.values)
    sizes = ", ".join(f"{size:,}" for size in one.sizes)
    yield f"      {_summary(one, varied)} (exponent {one.law.exponent:.2f})"
    if len(one.tables) == 1:
        yield f"      {values} {one.figure} with {sizes} rows in {one.tables[0]}"
    else:
        yield f"      {values} {one.figure} with {varied} = {sizes}"
    if not is_only:
        yield f"      (only the number for {varied} was increased)"
    if one.parent:
        yield f"      it runs {TIMES[one.times]} per row of {shorten(one.parent, 100)}"
    if one.each and not one.each.is_constant and one.parent:
        of = one.tables[-1] if one.tables else varied
        yield f"      the steps of each execution {growth_in_words('grow', one.each, of)}"
    ratio = one.law.times_as_much(10)
    yield f"      10 times the data: {ratio:,.{0 if ratio >= 10 else 1}f} times the work"
    yield from (f"      plan  {step}" for plan in one.last.plans for step in plan)
    for site in one.last.sites[:MAX_SITES]:
        yield from (f"      {line}" for line in site_lines(site))


def _together(some: Sequence[Growth]) -> str:
    tables = dict.fromkeys(table for one in some for table in one.tables)
    named = ", ".join(list(tables)[:MAX_TABLES])
    return (
        f"These tables grew together: {named}. To tell them apart, give populate() one parameter"
        " for each."
    )
