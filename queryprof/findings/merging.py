"""Merge findings that share a cause or a line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from queryprof.analysis.call_sites import place_of
from queryprof.analysis.units import counted, duration, shorten
from queryprof.findings.finding import (
    UNKNOWN_ITEMS,
    Finding,
    Severity,
    most_severe,
    severity_of_gain,
)
from queryprof.findings.libraries import BOTH

MAX_CHARACTERS = 200
"""The most characters shown of a merged finding's other statement."""

MAX_DIFFERING_SHARE = 0.34
"""Two statements on one line are similar if at most this share of their words differs, such as the
table names.
"""

ONE_EACH = "statements need an index each"
"""Words in the fix of a merged finding if each statement needs its own index."""

SHOWN_CODES = 3
"""The number of statements for which the SQL of a merged finding is shown."""


def merge_same_cause(findings: Iterable[Finding]) -> list[Finding]:
    """Merge findings that one index fixes, and findings about one statement in several lines of a
    function. The merged finding keeps the call site with the largest gain.
    """
    found: dict[str, list[Finding]] = {}
    for one in sorted(
        findings, key=lambda one: -len(one.code)
    ):  # SQL with several indexes comes before SQL with one of them
        cause = one.identity
        if one.code.startswith("CREATE"):
            cause = next((code for code in found if is_part_of_code(one.code, code)), one.code)
        found.setdefault(cause, []).append(one)
    merged = [
        _merge_findings(sorted(group, key=lambda one: -one.gain_ns)) for group in found.values()
    ]
    return _merge_nested_loads(_merge_same_line(merged))


def _merge_nested_loads(findings: Iterable[Finding]) -> list[Finding]:
    """Merge a nested lazy load with the outer lazy load if the fix of the nested load also loads
    the outer load's data.
    """
    found = list(findings)
    for inner in [one for one in found if BOTH in one.fix]:
        outer = next(
            (
                one
                for one in found
                if (one.category, one.statement) == (inner.category, inner.parent) and one != inner
            ),
            None,
        )
        if outer:
            found.remove(outer)
            found[found.index(inner)] = _merge_into_outer_load(inner, outer)
    return found


def _merge_into_outer_load(inner: Finding, outer: Finding) -> Finding:
    gain_ns = inner.gain_ns + outer.gain_ns
    first = max(inner, outer, key=lambda one: one.gain_ns)
    share = _combined_share(first, gain_ns)
    line = outer.site.frame.line if outer.site.frame else "(unknown)"
    return replace(
        inner,
        gain_ns=gain_ns,
        share=share,
        severity=most_severe(inner.severity, outer.severity, _combined_severity([inner, outer])),
        evidence=(
            *inner.evidence,
            f"the fix also covers the outer query in line {line}: {outer.evidence[0]}",
        ),
    )


def _merge_same_line(findings: Iterable[Finding]) -> list[Finding]:
    """Merge findings about similar statements that one line in one loop runs, such as one query for
    each of several tables, and N+1 queries of one line that have the same fix. Also merge writes of
    one loop that one transaction around the loop speeds up.
    """
    found: dict[tuple[object, ...], list[Finding]] = {}
    for one in sorted(findings, key=lambda one: -one.gain_ns):
        loop = one.loop.frame if one.loop else one.statement
        is_load = one.category == "n_plus_one" and bool(one.library)  # maybe of one attribute
        commits = one.category == "commit_per_write" and one.loop is not None and not one.doubt
        alike_by = one.fix if is_load or commits else len(one.statement.split())
        key = one.category, None if commits else place_of(one.site.frame), loop, alike_by
        alike = found.setdefault(key, [])
        has_same_fix = is_load or commits or not alike
        if not has_same_fix and not are_similar_statements(one.statement, alike[0].statement):
            found[key, one.statement] = [one]
        else:
            alike.append(one)
    return [
        _add_other_statements(*(sorted(alike, key=_line) if key[1] is None else alike))
        for key, alike in found.items()
    ]


def _line(finding: Finding) -> tuple[str, int]:
    """Return a sort key that does not change with times, so that the finding's identity stays."""
    frame = finding.site.frame
    return (frame.file, frame.line) if frame else ("", 0)


def are_similar_statements(statement: str, other: str) -> bool:
    """Return whether two statements with the same number of words differ in only a few words."""
    words = list(zip(statement.split(), other.split(), strict=True))
    return sum(one != two for one, two in words) <= MAX_DIFFERING_SHARE * len(words)


def _add_other_statements(first: Finding, *others: Finding) -> Finding:
    if not others:
        return first
    gain_ns = sum(one.gain_ns for one in others)
    is_line = {place_of(one.site.frame) for one in others} == {place_of(first.site.frame)}
    more = (
        f"{duration(gain_ns)} of the saving comes from {counted(len(others), 'other statement')}"
        f" {'on this line' if is_line else 'in this loop'}"
    )
    codes = list(dict.fromkeys(one.code for one in (first, *others) if one.code))
    fix = first.fix
    if len(codes) > 1:
        need = ONE_EACH if first.code.startswith("CREATE") else "statements need such a change"
        fix += f" {len(codes)} {need}" + (
            f"; {SHOWN_CODES} are shown." * (len(codes) > SHOWN_CODES) or "."
        )
    return replace(
        first,
        fix=fix,
        code=" ".join(codes[:SHOWN_CODES]),
        gain_ns=first.gain_ns + gain_ns,
        share=_combined_share(first, first.gain_ns + gain_ns),
        severity=most_severe(first.severity, _combined_severity([first, *others])),
        evidence=(*first.evidence, f"{more}: {shorten(others[0].statement, MAX_CHARACTERS)}"),
    )


def _combined_share(first: Finding, gain_ns: float) -> float:
    """Return the share that several findings save together, scaled from the first finding's
    share.
    """
    return min(1.0, first.share * gain_ns / first.gain_ns) if first.gain_ns else first.share


def _combined_severity(group: list[Finding]) -> Severity:
    """Return the severity of the group's total share; LOW if a finding has a doubt other than
    UNKNOWN_ITEMS.
    """
    share, doubts = sum(one.share for one in group), {one.doubt for one in group}
    if doubts == {""}:
        return severity_of_gain(share, 0.0)
    if doubts <= {"", UNKNOWN_ITEMS}:
        return severity_of_gain(share, 0.0, is_sure=False)
    return Severity.LOW


def is_part_of_code(code: str, of: str) -> bool:
    """Return whether `of` contains the SQL `code`, or has an index that begins with the columns of
    the index in `code`.
    """
    on, other = (one.partition(" ON ")[2].removesuffix(");") for one in (code, of))
    return code in of or other.startswith(f"{on}, ")


def _merge_findings(group: list[Finding]) -> Finding:
    first, *others = group
    if not others:
        return first
    gain_ns = sum(one.gain_ns for one in group)
    places = [
        f"{one.site.frame.function} line {one.site.frame.line}" if one.site.frame else "(unknown)"
        for one in others
    ]
    more = duration(gain_ns - first.gain_ns)
    serves = (
        f"the same fix saves up to {more} more here"
        if all(one.identity == first.identity for one in others)
        else f"the fix also helps {counted(len(others), 'other statement')}, saving up to {more}"
    )
    return replace(
        first,
        gain_ns=gain_ns,
        share=_combined_share(first, gain_ns),
        severity=most_severe(*(one.severity for one in group), _combined_severity(group)),
        evidence=(*first.evidence, f"{serves}: {', '.join(dict.fromkeys(places))}"),
    )
