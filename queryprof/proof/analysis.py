"""ANALYZE, as a step of the search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Analysis:
    """Not an index: ANALYZE, which fills the statistics that the planner chooses by."""

    @property
    def table(self) -> str:
        return ""

    def sql(self, _name: str) -> str:
        return "ANALYZE"


ANALYZE = Analysis()
