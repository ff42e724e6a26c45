"""What the values given to a statement show, of a sample of its executions."""

from __future__ import annotations

from dataclasses import dataclass

from queryprof.model import ParameterSample

OFFSETS = 4
"""So many that were sampled show what they are like."""


@dataclass
class GivenValues:
    """The sums of samples; see ParameterSample."""

    samples: int = 0
    repeats: int = 0
    offsets: int = 0
    skipped: int = 0
    open_patterns: int = 0

    def add(self, sample: ParameterSample) -> None:
        self.samples += sample.samples
        self.repeats += sample.repeats
        self.offsets += sample.offsets
        self.skipped += sample.skipped
        self.open_patterns += sample.open_patterns

    def offset_of(self, executions: int) -> float | None:
        """The mean OFFSET; None: too few were sampled, as the first one is a first page's."""
        is_known = self.offsets >= min(OFFSETS, max(1, executions))
        return self.skipped / self.offsets if is_known else None
