"""OpenTelemetry names for the content of a profile.

The names follow the stable semantic conventions for databases and code,
https://opentelemetry.io/docs/specs/semconv/.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from queryprof.fleet.names import FleetPlaces, identifier
from queryprof.model import CallPath, Process, Profile
from queryprof.recorder.autoload import program_named_in
from queryprof.sql.tokens import tokens_of
from queryprof.trace.collapsed import ALL_PROCESSES
from queryprof.version import __version__

MAX_SUMMARY_CHARACTERS = 255
"""Maximum length of a summary in characters, from the conventions."""

BEFORE_TARGETS = ("FROM", "JOIN", "INTO", "UPDATE", "TABLE")
AttributeValue = str | int | None


def known_attributes(values: Mapping[str, AttributeValue]) -> list[KeyValue]:
    """Convert values to OpenTelemetry attributes. Values that are None or "" are omitted."""
    found = []
    for key, value in values.items():
        if value is None or value == "":
            continue
        if isinstance(value, int):
            found.append(KeyValue(key=key, value=AnyValue(int_value=value)))
        else:
            text = value.encode("utf-8", "backslashreplace").decode()
            found.append(KeyValue(key=key, value=AnyValue(string_value=text)))
    return found


class AttributeNames:
    """The attribute names and values for the statements of one profile.

    Args:
        has_text: include the texts of statements.
    """

    def __init__(self, profile: Profile, has_text: bool) -> None:
        self._places = FleetPlaces(profile)
        self._systems = profile.systems
        self._has_text = has_text
        self._databases: dict[str, set[str]] = {}
        for plan in profile.plans:
            self._databases.setdefault(plan.statement, set()).add(os.path.basename(plan.database))

    def statement_attributes(self, statement: str, path: CallPath) -> dict[str, AttributeValue]:
        """Return the attributes of a statement and the call path that executed it."""
        databases = self._databases.get(statement, set())
        frame = path[0] if path else None
        return {
            "db.system.name": self._systems.get(statement),
            "db.query.summary": statement_summary(statement),
            "db.namespace": next(iter(databases)) if len(databases) == 1 else None,
            "db.query.text": statement if self._has_text else None,
            "queryprof.statement.id": identifier(statement),
            "code.function.name": frame.function if frame else None,
            "code.file.path": self._places.file(frame.file) if frame else None,
            "code.line.number": frame.line if frame and frame.line else None,
        }


def statement_summary(statement: str) -> str:
    """Return a statement's operation and tables, such as "SELECT purchase customer"."""
    if statement.startswith("(") and statement[1:-1].isalpha() and statement.endswith(")"):
        return statement[1:-1]  # (connect), (commit): not SQL
    tokens = tokens_of(statement)
    found = [next((token.keyword for token in tokens if token.keyword), "")]
    for before, token in pairwise(tokens):
        is_target = before.keyword in BEFORE_TARGETS and token.kind in ("word", "name")
        if is_target and token.text not in found:
            found.append(token.text)
    return " ".join(found)[:MAX_SUMMARY_CHARACTERS]


def common_resource(processes: Sequence[Process]) -> Resource:
    """Return the resource of a process, or the attributes that the resources of several processes
    share.
    """
    names = [
        {
            "service.name": process.service or program_named_in(process.argv),
            "service.version": process.version,
            "deployment.environment.name": process.environment,
            "host.name": process.host,
            "process.runtime.name": "cpython",
            "process.runtime.version": process.python_version,
            "process.pid": process.pid,
            "service.instance.id": identifier(
                f"{process.host} {process.pid} {process.start_unix_ns}"
            ),
        }
        for process in processes
    ]
    first: dict[str, AttributeValue] = dict(names[0]) if names else {}
    common = {key: v for key, v in first.items() if all(one[key] == v for one in names)}
    return Resource(attributes=known_attributes({"service.name": "(several)", **common, **_SDK}))


_SDK: dict[str, AttributeValue] = {
    "telemetry.sdk.name": "queryprof",
    "telemetry.sdk.language": "python",
    "telemetry.sdk.version": __version__,
}


def processes_numbered(profile: Profile, number: int) -> list[Process]:
    """Return the process with a number, or all processes for ALL_PROCESSES."""
    return [one for one in profile.processes if number in (ALL_PROCESSES, one.id)]


def process_numbered(profile: Profile, number: int) -> Process | None:
    """Return the process with a number; None if the number stands for several processes."""
    found = processes_numbered(profile, number)
    return found[0] if len(found) == 1 else None
