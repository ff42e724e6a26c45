"""Scenario files: the calls of a repeatable experiment and their times.

    output = "checkout"                # a directory, emptied at the start of each run

    [groups]
    server = 1                         # processes
    clients = 4

    [[at]]
    s = 2.5                            # seconds after the start
    group = "clients"                  # every process of the group
    call = "load:browse"               # module:function, next to the scenario file
    arguments = ["http://localhost", 100]

Each process makes its calls in the order of their times. A call that is due during another call
starts when the other call has ended.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass
from typing import Any

from queryprof.errors import QueryprofError

CALL = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
GROUP = re.compile(r"[\w-][\w -]*")
"""A valid name of a group. It becomes a part of file names."""

MAX_PROCESSES = 1000


@dataclass(frozen=True, slots=True)
class ScheduledCall:
    """A call in every process of a group, at a time in seconds after the start."""

    at_s: float
    group: str
    call: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario. `groups` has (name, number of processes); `lines` has the calls by time."""

    path: str
    output: str
    groups: tuple[tuple[str, int], ...]
    lines: tuple[ScheduledCall, ...]

    @property
    def directory(self) -> str:
        """The directory in which the processes start."""
        return os.path.dirname(os.path.abspath(self.path))


def read_scenario(path: str) -> Scenario:
    """Read a scenario file.

    Raises:
        QueryprofError: the file is missing or invalid.
    """
    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except FileNotFoundError:
        raise QueryprofError(f"{path}: no such file") from None
    except OSError as error:
        raise QueryprofError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise QueryprofError(f"{path}: not valid TOML: {error}") from error
    unknown = sorted(set(table) - {"output", "groups", "at"})
    if unknown:
        raise QueryprofError(
            f"{path}: unknown key {unknown[0]!r}; a scenario has output, groups and at"
        )
    groups = _parse_groups(path, table.get("groups"))
    lines = table.get("at")
    if not isinstance(lines, list) or not lines:
        raise QueryprofError(f"{path}: has nothing to do: it needs a line [[at]]")
    found = [
        _parse_line(f"{path}: [[at]] {n}", line, dict(groups)) for n, line in enumerate(lines, 1)
    ]
    output = table.get("output", os.path.splitext(os.path.basename(path))[0])
    if not isinstance(output, str) or not output:
        raise QueryprofError(f"{path}: output must be the name of a directory, not {output!r}")
    beside = os.path.join(os.path.dirname(os.path.abspath(path)), output)
    return Scenario(path, beside, groups, tuple(sorted(found, key=lambda line: line.at_s)))


def _parse_groups(path: str, table: object) -> tuple[tuple[str, int], ...]:
    if not isinstance(table, dict) or not table:
        raise QueryprofError(
            f"{path}: add [groups], with a line NAME = NUMBER_OF_PROCESSES for each group"
        )
    for name, processes in table.items():
        if not GROUP.fullmatch(name):
            raise QueryprofError(
                f"{path}: group {name!r}: use only letters, digits, spaces, _ and -"
            )
        if type(processes) is not int or not 1 <= processes <= MAX_PROCESSES:
            raise QueryprofError(
                f"{path}: group {name} must have 1 to {MAX_PROCESSES} processes, not {processes!r}"
            )
    return tuple(table.items())


def _parse_line(where: str, line: object, groups: dict[str, int]) -> ScheduledCall:
    if not isinstance(line, dict) or not {"s", "group", "call"} <= set(line):
        raise QueryprofError(f"{where}: needs s, group and call")
    unknown = sorted(set(line) - {"s", "group", "call", "arguments"})
    if unknown:
        raise QueryprofError(
            f"{where}: unknown key {unknown[0]!r}; a line has s, group, call and arguments"
        )
    at_s, group, call = line["s"], line["group"], line["call"]
    arguments = line.get("arguments", [])
    if isinstance(at_s, bool) or not isinstance(at_s, int | float) or not at_s >= 0:
        raise QueryprofError(f"{where}: s must be seconds after the start, not {at_s!r}")
    if not isinstance(group, str) or group not in groups:
        raise QueryprofError(f"{where}: no group {group!r} in [groups]")
    if not isinstance(call, str) or not CALL.fullmatch(call):
        raise QueryprofError(f"{where}: call must be module:function, not {call!r}")
    if not isinstance(arguments, list):
        raise QueryprofError(f"{where}: arguments must be a list, not {arguments!r}")
    return ScheduledCall(float(at_s), group, call, tuple(arguments))
