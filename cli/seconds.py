"""An option's value that is a time."""

from __future__ import annotations

import re

import click

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "": 1.0}


class Seconds(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has none
    """An interval: 500ms, 1s, 2.

    Args:
        most_s: the longest one.
    """

    name = "seconds"

    def __init__(self, most_s: int = 3600) -> None:
        self.most_s = most_s

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|)", str(value))
        seconds = float(found[1]) * UNITS[found[2]] if found else 0
        if not 0.05 <= seconds <= self.most_s:
            most = self.most_s // 60
            self.fail(f"{value!r} is no interval from 50ms to {most}m", param, ctx)
        return seconds
