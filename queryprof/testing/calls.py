"""The calls of a block, in parts. queryprof reads the recording several times during the block; a
part contains the calls between two of these reads. The calls are described only when needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from threading import current_thread

from queryprof.analysis.baseline_rules import RegressionRules
from queryprof.comparing.baseline_figures import StatementFigures, TestFigures, figures_of_test
from queryprof.model import Aggregate, LockTime, Plan, Step
from queryprof.region.changes import ChangeSet
from queryprof.region.descriptions import Descriptions


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls in some parts.

    Attributes:
        script: the file of the command that runs the tests (manage.py), whose frames are the
            outermost of all calls; "" if there is no such command.
        test_thread: statements of this thread without any frame of the program are ignored, because
            a framework ran them to prepare or clean up; "" to ignore none.
    """

    parts: list[ChangeSet]
    descriptions: Descriptions
    rules: RegressionRules
    script: str = ""
    test_thread: str = field(default_factory=lambda: current_thread().name)

    def figures(self, with_sites: bool = True) -> dict[str, StatementFigures]:
        """Return the figures of all parts together."""
        return self._figures_of(self.parts, with_sites)

    def figures_by_part(self) -> list[TestFigures]:
        return [self._figures_of([part], with_sites=True) for part in self.parts]

    def aggregates(self) -> list[Aggregate]:
        """Return the aggregates of all parts. The same aggregate may occur more than once."""
        return [one for part in self.parts for one in self.descriptions.aggregates(part)]

    def plans(self) -> list[Plan]:
        """Return the plans of all parts."""
        return [plan for part in self.parts for plan in self.descriptions.plans(part)]

    def _figures_of(self, parts: list[ChangeSet], with_sites: bool) -> dict[str, StatementFigures]:
        some = replace(self, parts=parts)
        found = some.aggregates(), self.rules, some.plans()
        return figures_of_test(*found, with_sites, self.test_thread, self.script)

    def longer_than(self, stall_ms: float) -> tuple[Step, ...]:
        """Return the functions that ran longer than `stall_ms` in an event loop, longest first."""
        steps = [step for part in self.parts for step in self.descriptions.steps(part)]
        found = [step for step in steps if step.durations.max_ns > stall_ms * 1e6]
        return tuple(sorted(found, key=lambda step: -step.durations.max_ns))

    def locks_longer_than(self, kind: str, ms: float) -> tuple[LockTime, ...]:
        """Return the lock waits or holds longer than `ms`, longest first."""
        times = [one for part in self.parts for one in self.descriptions.lock_times(part)]
        found = [one for one in times if one.kind == kind and one.max_ns > ms * 1e6]
        return tuple(sorted(found, key=lambda one: -one.max_ns))
