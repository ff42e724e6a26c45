"""Facts about the values given to a statement, from a sample of its executions."""

from __future__ import annotations

from dataclasses import dataclass

from queryprof.model import ParameterSample

ENOUGH = 4
"""This many sampled executions are representative of all."""


@dataclass
class SampledParameters:
    """The sums of a statement's samples; see ParameterSample."""

    samples: int = 0
    repeats: int = 0
    offsets: int = 0
    skipped: int = 0
    open_patterns: int = 0
    slow: int = 0

    def add_sample(self, sample: ParameterSample) -> None:
        self.samples += sample.samples
        self.repeats += sample.repeats
        self.offsets += sample.offsets
        self.skipped += sample.skipped
        self.open_patterns += sample.open_patterns
        self.slow += sample.slow

    def mean_offset(self, executions: int) -> float | None:
        """Return the mean OFFSET; None if too few samples have one. First pages have no OFFSET."""
        return (
            self.skipped / self.offsets if _has_enough_samples(self.offsets, executions) else None
        )

    def wildcard_share(self, executions: int) -> float | None:
        """Return the share of samples with a value that begins with a wildcard; None if there are
        too few samples.
        """
        samples = self.samples - self.slow
        return self.open_patterns / samples if _has_enough_samples(samples, executions) else None


def _has_enough_samples(sampled: int, executions: int) -> bool:
    return sampled >= min(ENOUGH, max(1, executions))
