"""Pragmas as the factors of an experiment: their levels, and what each may lose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from queryprof.tuning.factorial import Effects, Trial

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
"""What a setting may lose: https://www.sqlite.org/pragma.html#pragma_synchronous."""

NOTES = {
    ("journal_mode", "wal"): "not on network file systems; two files more beside the database",
    ("mmap_size", ""): "an error of the disk is a signal (SIGBUS) and no exception",
    ("temp_store", "memory"): "sorts take memory instead of disk",
    ("cache_size", ""): "memory for each connection",
    ("page_size", ""): "takes effect with VACUUM",
}
"""What else to know; "" is any value."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A pragma with its two levels: the first is -1, the second +1."""

    name: str
    levels: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Combination:
    """One setting of all pragmas.

    Attributes:
        database_s: of each replication; risks: what it may lose.
    """

    pragmas: tuple[tuple[str, str], ...]
    database_s: tuple[float, ...]
    risks: tuple[str, ...]

    @property
    def mean_s(self) -> float:
        return sum(self.database_s) / len(self.database_s)


@dataclass(frozen=True, slots=True)
class PragmaExperiment:
    """The results; combinations are the fastest first."""

    factors: tuple[Factor, ...]
    effects: Effects
    combinations: tuple[Combination, ...]

    @property
    def safe(self) -> Combination | None:
        """The fastest that loses nothing; None: all may lose something."""
        return next((one for one in self.combinations if not one.risks), None)

    @property
    def is_certain(self) -> bool:
        """Whether any effect's interval excludes that there is none."""
        return any(self.effects.is_certain(effect) for effect in self.effects.effects)


def pragmas_of(factors: Sequence[Factor], trial: Trial) -> tuple[tuple[str, str], ...]:
    """The pragmas of a trial."""
    return tuple(
        (factor.name, factor.levels[level > 0])
        for factor, level in zip(factors, trial.levels, strict=True)
    )


def notes_of(combination: Combination) -> list[str]:
    """What to know of a combination's pragmas."""
    return [
        f"{name} = {value}: {note}"
        for name, value in combination.pragmas
        for note in [NOTES.get((name, value)) or NOTES.get((name, ""))]
        if note
    ]
