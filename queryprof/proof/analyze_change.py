"""ANALYZE as a change that the search can choose."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AnalyzeChange:
    """The ANALYZE command, with the interface of a candidate index. ANALYZE fills the planner's
    statistics.
    """

    @property
    def table(self) -> str:
        return ""

    def sql(self, _name: str) -> str:
        return "ANALYZE"


ANALYZE = AnalyzeChange()
