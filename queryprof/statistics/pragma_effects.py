"""Pragmas as the factors of an experiment: their levels, and the risks of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from queryprof.statistics.factorial import Effects, Trial

CORRUPTS = "a power failure may corrupt the database, or lose what was committed"
LAST_COMMITS = (
    "a power failure may lose the last commits with a write-ahead log; without one it may, in"
    " theory, corrupt the database on old file systems"
)

RISKS = {
    ("journal_mode", "memory"): "a crash of the program in a transaction may corrupt the database",
    ("journal_mode", "off"): "no ROLLBACK; a crash in a transaction corrupts the database",
    ("synchronous", "off"): CORRUPTS,
    ("synchronous", "0"): CORRUPTS,
    ("synchronous", "normal"): LAST_COMMITS,
    ("synchronous", "1"): LAST_COMMITS,
}
"""The possible damage of a crash or power failure with a setting
(https://www.sqlite.org/pragma.html#pragma_synchronous).
"""

NOTES = {
    ("journal_mode", "wal"): "not on network file systems; adds two files next to the database",
    ("mmap_size", ""): "a disk error is a signal (SIGBUS), not an exception",
    ("temp_store", "memory"): "sorts take memory instead of disk",
    ("cache_size", ""): "memory for each connection",
    ("page_size", ""): "takes effect with VACUUM",
}
"""Further notes on a setting; "" means any value."""


@dataclass(frozen=True, slots=True)
class PragmaFactor:
    """A pragma with its two levels. The first level is -1, the second level is +1."""

    name: str
    levels: tuple[str, str]


@dataclass(frozen=True, slots=True)
class PragmaCombination:
    """One setting of all pragmas.

    Attributes:
        database_s: database time of each replication.
        risks: the possible damage with this setting, in words.
    """

    pragmas: tuple[tuple[str, str], ...]
    database_s: tuple[float, ...]
    risks: tuple[str, ...]

    @property
    def mean_s(self) -> float:
        return sum(self.database_s) / len(self.database_s)


@dataclass(frozen=True, slots=True)
class PragmaExperiment:
    """The results of an experiment with pragmas. The fastest combination comes first."""

    factors: tuple[PragmaFactor, ...]
    effects: Effects
    combinations: tuple[PragmaCombination, ...]

    @property
    def safe(self) -> PragmaCombination | None:
        """The fastest combination without risks; None if all have risks."""
        return next((one for one in self.combinations if not one.risks), None)

    @property
    def is_certain(self) -> bool:
        """Whether the interval of any effect excludes "no effect"."""
        return any(self.effects.is_certain(effect) for effect in self.effects.effects)


def pragmas_of(factors: Sequence[PragmaFactor], trial: Trial) -> tuple[tuple[str, str], ...]:
    """Return the pragmas of a trial."""
    return tuple(
        (factor.name, factor.levels[level > 0])
        for factor, level in zip(factors, trial.levels, strict=True)
    )


def combination_notes(combination: PragmaCombination) -> list[str]:
    """Return notes on a combination's pragmas."""
    return [
        f"{name} = {value}: {note}"
        for name, value in combination.pragmas
        for note in [NOTES.get((name, value)) or NOTES.get((name, ""))]
        if note
    ]
