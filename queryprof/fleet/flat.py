"""Convert a profile to the rows of a fleet's tables.

Each table has one row per key. Threads and processes of the same host and version are added up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from queryprof.analysis.report import Report
from queryprof.findings.find import find_all
from queryprof.fleet.names import FlatNames, identifier
from queryprof.fleet.schema import COUNTED_BY, FLEET_TABLE, OWNER, SCHEMA
from queryprof.model import Aggregate, FileWork, Process, Profile, Span
from queryprof.recorder.autoload import program_named_in
from queryprof.trace.collapsed import ALL_PROCESSES
from queryprof.trace.declaration import KEY, LEAST, MOST, SUM
from queryprof.trace.tables import TABLE

SEVERAL = "(several)"
"""Service name of rows that combine several services."""

Row = tuple[Any, ...]
Key = tuple["Owner", str, str, str, str]
"""The key of a row: owner, statement, path, span and operation."""

Flat = tuple["Owner", tuple[str, ...], Row]
"""A row without its window: the owner, the rest of the key, and the values."""


class Owner(NamedTuple):
    """The service, version, environment and host of a row. None means unknown or several."""

    service: str
    version: str | None
    environment: str | None
    host: str | None


@dataclass(frozen=True, slots=True)
class HostWindow:
    """The rows of one host and service for one window.

    Attributes:
        start_unix_ns: start of the window.
        identities: for each process, its host, process id, start, and the start and end of the
            window. The end is needed because several windows may begin at the same time if the
            clock was set back.
        versions: version and environment of the processes, as text.
        lost_windows: the number of windows that each process has removed, because it keeps only the
            latest; by host, process id and start.
        is_shared: whether the spans, plans and findings combine several owners.
        tables: the rows of each table, in the order of its columns, sorted by its key.
    """

    service: str
    host: str | None
    start_unix_ns: int
    identities: tuple[tuple[str, int, int, int, int], ...]
    versions: tuple[str, ...]
    lost_windows: Mapping[tuple[str, int, int], int]
    is_shared: bool
    tables: Mapping[str, Sequence[Row]]

    @property
    def identity(self) -> str:
        """A hash that is the same whenever the same processes and windows are exported."""
        return identifier(
            json.dumps([SCHEMA, self.service, self.host, self.versions, self.identities])
        )


def host_windows(profile: Profile, is_anonymous: bool = False) -> list[HostWindow]:
    """Convert a profile to rows, grouped by service and host.

    Args:
        is_anonymous: replace the program's texts, such as statements, by their hashes.
    """
    return _Flattening(profile, is_anonymous).windows()


class _Figures:
    """Merges the figures of one trace table. Each column's role decides between sum, minimum and
    maximum.
    """

    def __init__(self, table: str) -> None:
        columns = [column for column in TABLE[table].columns if column.role != KEY]
        self.names = [column.name for column in columns]
        self._sums = [at for at, column in enumerate(columns) if column.role == SUM]
        self._most = [at for at, column in enumerate(columns) if column.role == MOST]
        self._least = [at for at, column in enumerate(columns) if column.role == LEAST]
        if len(self._sums + self._most + self._least) != len(columns):
            raise AssertionError(f"a column of {table} has no fold")
        self._count = self.names.index("count") if "count" in self.names else 0

    def fold(self, known: dict[Key, list[Any]], key: Key, more: Sequence[Any]) -> None:
        """Merge figures into the figures of a key."""
        to = known.get(key)
        if to is None:
            known[key] = list(more)
            return
        for at in self._least:  # a row without calls has no minimum
            if more[self._count]:
                to[at] = min(to[at], more[at]) if to[self._count] else more[at]
        for at in self._sums:
            to[at] += more[at]
        for at in self._most:
            to[at] = max(to[at], more[at])


CALLS, FILES, SPANS = _Figures("aggregate"), _Figures("file_work"), _Figures("span_total")
_values_of_call = attrgetter(*CALLS.names)
_values_of_files = attrgetter(*FILES.names)


def _owner(process: Process) -> Owner:
    service = process.service or program_named_in(process.argv)
    return Owner(service, process.version, process.environment, process.host)


class _Flattening:
    """Converts one profile to rows."""

    def __init__(self, profile: Profile, is_anonymous: bool) -> None:
        self._profile = profile
        self._report = Report(profile)
        self._names = FlatNames(profile, self._report.sites, is_anonymous)
        self._owners = {one.id: _owner(one) for one in profile.processes}
        self._of_all = _shared_fields(set(self._owners.values()))
        self._processes: dict[Owner, list[Process]] = {}
        for one in profile.processes:
            self._processes.setdefault(self._owners[one.id], []).append(one)
        self._processes.setdefault(self._of_all, list(profile.processes))
        self._windows: dict[Owner, Row] = {}
        self._sites: dict[str, tuple[str, str]] = {}  # by path: call site and function

    def windows(self) -> list[HostWindow]:
        """Return the rows of all tables, grouped by service and host."""
        rows: dict[tuple[str, str | None], dict[str, list[Row]]] = {}
        for table, flat in (
            ("aggregate", self._aggregates()),
            ("span", self._spans()),
            ("plan", self._plans()),
            ("finding", self._findings()),
        ):
            for owner, key, values in flat:
                tables = rows.setdefault((owner.service, owner.host), {})
                row = (*owner[1:], *key, *self._window_of(owner), *values)
                tables.setdefault(table, []).append(row)
        return [
            self._host_window(service, host, tables)
            for (service, host), tables in sorted(
                rows.items(), key=lambda one: _unknown_first(one[0])
            )
        ]

    def _host_window(
        self, service: str, host: str | None, tables: dict[str, list[Row]]
    ) -> HostWindow:
        its = [
            process
            for owner, processes in self._processes.items()
            if (owner.service, owner.host) == (service, host)
            for process in processes
        ]
        identities = {
            (p.host, p.pid, p.start_unix_ns, p.recorded_unix_ns, p.end_unix_ns) for p in its
        }
        return HostWindow(
            service,
            host,
            min(process.recorded_unix_ns for process in its),
            tuple(sorted(identities)),
            tuple(sorted({f"{self._owners[one.id][1:3]}" for one in its})),
            {
                (one.host, one.pid, one.start_unix_ns): one.lost_windows
                for one in its
                if one.lost_windows
            },
            len(set(self._owners.values())) > 1,
            {name: _sort_rows(name, some) for name, some in tables.items()},
        )

    def _window_of(self, owner: Owner) -> Row:
        """Return the start and end of an owner's window (us since 1970), and the number of
        processes.
        """
        known = self._windows.get(owner)
        if known is not None:
            return known
        its = self._processes[owner]
        more = self._profile.unlisted if owner == self._of_all else None
        starts = [process.recorded_unix_ns for process in its]
        ends = [process.end_unix_ns for process in its]
        if more:
            starts, ends = [*starts, more.start_unix_ns], [*ends, more.end_unix_ns]
        count = len(its) + (more.count if more else 0)
        window = self._windows[owner] = min(starts) // 1000, max(ends) // 1000, count
        return window

    def _key(self, call: Aggregate | FileWork) -> Key:
        path, site, place = self._names.path(call.path)
        self._sites[path] = site, place
        process_id = call.thread.process_id
        owner = self._of_all if process_id == ALL_PROCESSES else self._owners[process_id]
        return owner, call.statement, path, call.span, call.operation

    def _aggregates(self) -> Iterator[Flat]:
        calls: dict[Key, list[Any]] = {}
        files: dict[Key, list[Any]] = {}
        histograms: dict[Key, dict[int, int]] = {}
        for one in self._profile.aggregates:
            key = self._key(one)
            began = one if one.histogram else one._replace(execution_max_ns=0)
            CALLS.fold(calls, key, _values_of_call(began))
            _add_histogram(histograms.setdefault(key, {}), one.histogram)
        for work in self._profile.file_work:
            FILES.fold(files, self._key(work), _values_of_files(work))
        outgoing, systems = self._names.outgoing_text, self._profile.systems
        for key in {**calls, **files}:
            owner, statement, path, span, operation = key
            buckets, counts = _bucket_lists(histograms.get(key, {}))
            named = {
                **dict(zip(CALLS.names, calls.get(key, NO_CALLS), strict=True)),
                **dict(zip(FILE_NAMES, files.get(key, NO_FILES), strict=True)),
            }
            yield (
                owner,
                (identifier(statement), path, outgoing(span), operation),
                (
                    outgoing(statement),
                    systems.get(statement),
                    *self._sites[path],
                    *_none_if_uncounted(named, sum(counts)),
                    buckets,
                    counts,
                ),
            )

    def _spans(self) -> Iterator[Flat]:
        for span in self._profile.spans:
            if span.name:
                buckets, counts = _bucket_lists(span.durations.histogram)
                named = dict(zip(SPANS.names, _values_of_span(span), strict=True))
                values = (*_none_if_uncounted(named), buckets, counts)
                yield self._of_all, (self._names.outgoing_text(span.name),), values

    def _plans(self) -> Iterator[Flat]:
        outgoing = self._names.outgoing_text
        plans = {
            (identifier(one.statement), self._names.database(one.database), outgoing(one.tree)): (
                outgoing(one.statement),
                identifier(one.tree),
            )
            for one in self._profile.plans
        }
        for key, values in plans.items():
            yield self._of_all, key, values

    def _findings(self) -> Iterator[Flat]:
        """Yield the findings that need only the trace, no source code or database."""
        outgoing = self._names.outgoing_text
        for one in find_all(self._report, lambda *_: None, {}):
            statement = identifier(one.statement) if one.statement else None
            site = self._names.site(one.site)
            fix = "\n".join(filter(None, (one.fix, one.code)))
            values = (one.category, one.severity.name.lower(), one.gain_ns, statement, site)
            evidence = "\n".join(one.evidence)
            yield (
                self._of_all,
                (outgoing(one.identity),),
                (*values, outgoing(fix), outgoing(evidence)),
            )


FILE_NAMES = [f"file_{name}" for name in FILES.names]
NO_CALLS, NO_FILES = [0] * len(CALLS.names), [None] * len(FILES.names)


def _shared_fields(owners: set[Owner]) -> Owner:
    """Return an owner with the fields that all owners share; other fields are None, or SEVERAL for
    the service.
    """
    if not owners:
        return Owner(SEVERAL, None, None, None)
    service, version, environment, host = (
        values[0] if len(set(values)) == 1 else None for values in zip(*owners, strict=True)
    )
    return Owner(service or SEVERAL, version, environment, host)


def _values_of_span(span: Span) -> Sequence[Any]:
    """Return a span's figures in the order of the columns of the trace's table."""
    durations, queries = span.durations, span.queries
    return (
        span.count,
        span.errors,
        span.cpu_count,
        span.cpu_ns,
        span.database_ns,
        durations.total_ns,
        durations.max_ns,
        queries.total_ns,
        queries.max_ns,
    )


def _none_if_uncounted(figures: Mapping[str, Any], executions: int = 0) -> list[Any]:
    """Return the figures, with None for figures whose sample count (COUNTED_BY) is 0."""
    counted = {**figures, "executions": executions}
    return [
        None if name in COUNTED_BY and not counted[COUNTED_BY[name]] else value
        for name, value in figures.items()
    ]


def _add_histogram(histogram: dict[int, int], more: Mapping[int, int]) -> None:
    for bucket, count in more.items():
        histogram[bucket] = histogram.get(bucket, 0) + count


def _bucket_lists(histogram: Mapping[int, int]) -> tuple[list[int], list[int]]:
    """Return the buckets that are not empty, and the count in each."""
    pairs = sorted((bucket, count) for bucket, count in histogram.items() if count)
    return [bucket for bucket, _ in pairs], [count for _, count in pairs]


def _sort_rows(table: str, rows: list[Row]) -> list[Row]:
    """Sort rows by their key. The version, environment and host come last, because queries search
    by the other columns.
    """
    facts = FLEET_TABLE[table]
    owners = len(OWNER)
    width = len(facts.key)
    return sorted(rows, key=lambda row: _unknown_first((*row[owners:width], *row[:owners])))


def _unknown_first(values: Sequence[str | None]) -> list[tuple[bool, str]]:
    """Return a sort key that puts unknown values first."""
    return [(value is not None, value or "") for value in values]
