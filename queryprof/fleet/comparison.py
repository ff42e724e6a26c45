"""Two versions of a service beside each other: what got worse on the hosts of the later one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from queryprof.errors import TraceError
from queryprof.fleet.duck import Engine, Selection

LEAST_HOSTS = 8
"""With fewer on a side the times of hosts say nothing of each other."""

GATES = ("time", "vmsteps", "counts", "plans", "findings")

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FleetComparison:
    """What is different in a version; each the most costly first.

    Attributes:
        slower, faster: statements whose times differ beyond the hosts' differences.
        more_steps: statements that take more VM steps an execution.
        requests: statements that are executed more often in a span.
        plans, findings: those that are new; statements: those that only one version has.
        unclear: statements of too few hosts; same: the others.
    """

    before: str
    after: str
    slower: Sequence[Record]
    faster: Sequence[Record]
    more_steps: Sequence[Record]
    requests: Sequence[Record]
    plans: Sequence[Record]
    findings: Sequence[Record]
    statements: Sequence[Record]
    unclear: int
    same: int

    def worse(self, gates: Sequence[str]) -> dict[str, int]:
        """How much got worse, by gate: those that count."""
        found = {
            "time": self.slower,
            "vmsteps": self.more_steps,
            "counts": self.requests,
            "plans": self.plans,
            "findings": self.findings,
        }
        return {gate: len(found[gate]) for gate in gates if found.get(gate)}


def compare_versions(
    engine: Engine, selection: Selection, before: str, after: str
) -> FleetComparison:
    """Compares two versions. Raises TraceError: there is nothing of one of them."""
    known = {one["version"] for one in engine.answer("names", selection).records()}
    for version in (before, after):
        if version not in known:
            there = ", ".join(sorted(filter(None, known))) or "none that has a name"
            raise TraceError(f"there is no version {version!r}: versions there are: {there}")
    sides = {"before": before, "after": after}

    def answer(question: str, **values: object) -> list[dict[str, Any]]:
        return engine.answer(question, selection, **sides, **values).records()

    compared = answer("compare", least_hosts=LEAST_HOSTS)
    verdicts = [one["time_verdict"] for one in compared]
    return FleetComparison(
        before,
        after,
        slower=[one for one in compared if one["time_verdict"] == "slower"],
        faster=[one for one in reversed(compared) if one["time_verdict"] == "faster"],
        more_steps=[one for one in compared if one["step_verdict"] == "more"],
        requests=answer("requests"),
        plans=answer("new_plans"),
        findings=answer("new_findings"),
        statements=answer("new_statements"),
        unclear=verdicts.count("unclear"),
        same=verdicts.count("same"),
    )
