"""Numbers with a unit on the command line."""

from __future__ import annotations

import sys
from typing import Any

import click


class Amount(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.3 on
    """A number with a unit: a float of the smallest one.

    Args:
        units: how much each is.
        examples: of what may be given.
    """

    def __init__(self, name: str, units: dict[str, int], examples: str) -> None:
        self.name = name
        self._units, self._examples = units, examples

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Reads it."""
        if isinstance(value, float):
            return value
        for unit, factor in self._units.items():
            number = str(value).upper().removesuffix(unit.upper())
            if number != str(value).upper() and number.replace(".", "", 1).isdecimal():
                found = float(number) * factor
                if 0 < found < sys.maxsize:
                    return found
        return self.fail(f"{value!r} is none: {self._examples}", param, ctx)


DURATION = Amount("duration", {"s": 1, "m": 60, "h": 3600, "d": 86400}, "30s, 5m, 1h, 90d")
"""In seconds."""

SIZE = Amount("size", {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}, "500MB, 1GB")
"""In bytes."""

PERCENTAGE = Amount("percentage", {"%": 1}, "1%, 100%")
