"""Durations, sizes, percentages and named values on the command line."""

from __future__ import annotations

import sys
from typing import Any

import click


class Amount(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.3 on
    """A number with a unit. The value is a float in the base unit.

    Args:
        units: the factor of each unit.
        examples: shown in the message about an invalid value.
        least, most: the limits in the base unit. If `least` is None, any positive value is valid.
    """

    def __init__(
        self,
        name: str,
        units: dict[str, float],
        examples: str,
        least: float | None = None,
        most: float = sys.maxsize,
    ) -> None:
        self.name = name
        self._units, self._examples = units, examples
        self._least, self._most = least, most

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read a value."""
        if isinstance(value, float):
            return value
        for unit, factor in self._units.items():
            number = str(value).upper().removesuffix(unit.upper())
            if number != str(value).upper() and number.replace(".", "", 1).isdecimal():
                found = float(number) * factor
                is_large_enough = found > 0 if self._least is None else found >= self._least
                if is_large_enough and found <= self._most and found < sys.maxsize:
                    return found
                break
        return self.fail(self._error_message(str(value)), param, ctx)

    def _error_message(self, value: str) -> str:
        limits = [(self._least or 0.0, "at least"), (self._most, "at most")]
        named = [
            f"{words} {self._format_amount(one)}" for one, words in limits if 0 < one < sys.maxsize
        ]
        within = f" ({', '.join(named)})" if named else ""
        return f"{value!r} is not a {self.name}: {self._examples}{within}"

    def _format_amount(self, amount: float) -> str:
        unit, factor = max(
            ((unit, factor) for unit, factor in self._units.items() if factor <= amount),
            key=lambda one: one[1],
        )
        return f"{amount / factor:g}{unit}"


UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def duration(least_s: float | None = None, most_s: float = sys.maxsize) -> Amount:
    """Return the type of a duration between two limits. The value is in seconds."""
    return Amount("duration", UNITS_S, "500ms, 60s, 5m, 90d", least_s, most_s)


DURATION = duration()
"""The type of a positive duration. The value is in seconds."""

UNITS_BYTES = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


def size(least_bytes: float, most_bytes: float = sys.maxsize) -> Amount:
    """Return the type of a size between two limits. The value is in bytes."""
    return Amount("size", UNITS_BYTES, "500MB, 1GB", least_bytes, most_bytes)


SIZE = size(1e3)
"""The type of a size of 1 kB or more. The value is in bytes."""


class NamedValue(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.3 on
    """NAME=VALUE with one of the given names. The value is the pair (name, text)."""

    name = "name=value"

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Read a pair."""
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not equals or name not in self._names:
            names = ", ".join(self._names)
            self.fail(f"{value!r}: write NAME=VALUE; the names are {names}", param, ctx)
        return name, text
