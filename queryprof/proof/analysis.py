"""ANALYZE as a step of the search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Analysis:
    """ANALYZE, in place of an index: it fills the statistics for the planner."""

    @property
    def table(self) -> str:
        return ""

    def sql(self, _name: str) -> str:
        return "ANALYZE"


ANALYZE = Analysis()
