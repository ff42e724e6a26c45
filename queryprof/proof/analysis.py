"""ANALYZE as a step of the search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Analysis:
    """ANALYZE as a change that the search can choose like an index. It fills the planner's
    statistics.
    """

    @property
    def table(self) -> str:
        return ""

    def sql(self, _name: str) -> str:
        return "ANALYZE"


ANALYZE = Analysis()
