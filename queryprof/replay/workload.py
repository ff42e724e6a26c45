"""Read workloads: files next to a trace, each with all executions of one process in order.

A file begins with the line `queryprof workload 2`. Records in the machine's byte order follow. Each
begins with its kind in one byte:

    T  a text: its length (32 bits), UTF-8. Texts are numbered from 1.
    C  a connection: its identity (64 bits), `S`, and the path of its main database; empty: in
       memory.
    E  an execution: start (ns since 1970, 64 bits), duration (ns, 64 bits), connection (64 bits),
       number of the text (32 bits; 0: none), number of the thread (16 bits), operation, whether it
       raised, whether the connection is in a transaction after it (0 unknown, 1 no, 2 yes), 3 bytes
       of padding, number of the call path (32 bits; below 2: unknown), serial number (64 bits);
       then its parameters.
    R  number of rows read so far from the execution with a serial number (64 bits each).
    P  a call path: its number and the number of its frames (32 bits each); for each frame,
       innermost first, `S` and its file, `S` and its function, and the line (32 bits).
    L  the end: the file has reached its size limit.

Parameters: `0` none, `?` unknown, `(` a count (32 bits) and that many values, `{` a count and that
many pairs of name and value, `[` a count and that many parameters. A value: `N` None, `I` 64 bits,
`F` a double, `S` and `B` text and bytes with their length (32 bits), `?` another type.
"""

from __future__ import annotations

import glob
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from queryprof.core import _core
from queryprof.errors import TraceError
from queryprof.given_file import content_of
from queryprof.model import CallPath, Frame

MAGIC = b"queryprof workload 2\n"
FIXED = struct.Struct("=qqQIHBBB3xIQ")
NUMBER, INTEGER, FLOAT = struct.Struct("=I"), struct.Struct("=q"), struct.Struct("=d")
IDENTITY, SERVED = struct.Struct("=Q"), struct.Struct("=Qq")

UNKNOWN, OUTSIDE, INSIDE = 0, 1, 2
"""The transaction state of a connection after an execution."""


class UnknownValue:
    """Stands for a value, or for parameters, that were not recorded."""


Parameters = tuple[object, ...] | dict[object, object] | list[object] | None | type[UnknownValue]


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution, commit, rollback or close.

    Attributes:
        process: the number of the process's workload file.
        thread, connection: ids that are unique within the process.
        database: the path of the database; "" if in memory; None if unknown.
        text: the original SQL; None if the operation has no SQL.
        parameters: a tuple or dict; for executemany, a list with the parameters of each execution;
            UnknownValue if not recorded.
        state: the connection's transaction state afterwards.
        path: the frames of the program's own code, innermost first.
        rows: number of rows that the program read; None if unknown.
    """

    process: int
    thread: int
    connection: int
    database: str | None
    operation: str
    start_unix_ns: int
    duration_ns: int
    text: str | None
    parameters: Parameters
    failed: bool
    state: int
    path: CallPath = ()
    rows: int | None = None

    @property
    def identity(self) -> tuple[int, int]:
        """The key of the execution's connection, unique in the whole workload."""
        return self.process, self.connection

    @property
    def is_known(self) -> bool:
        """Whether all values of the execution were recorded."""
        rows = self.parameters if isinstance(self.parameters, list) else [self.parameters]
        return all(
            row is not UnknownValue
            and UnknownValue not in (row.values() if isinstance(row, dict) else row or ())  # type: ignore[operator]
            for row in rows
        )


@dataclass(frozen=True, slots=True)
class Workload:
    """The executions of all processes, by start.

    Attributes:
        is_cut: whether executions are missing at the end of a file.
        bytes: total size of the workload's files.
    """

    executions: tuple[Execution, ...]
    is_cut: bool
    bytes: int = 0


def workload_prefix(trace: str) -> str:
    """Return the common prefix of the paths of a trace's workload files."""
    return f"{trace}-workload-"


def remove_workloads(trace: str) -> None:
    """Remove the workload files next to a trace. Raises TraceError if a file with such a name is
    not a workload.
    """
    paths = glob.glob(glob.escape(workload_prefix(trace)) + "*")
    for path in paths:
        if os.path.islink(path) or not _is_workload(path):
            raise TraceError(f"{path}: exists and is not a workload; choose another name with -o")
    for path in paths:
        os.unlink(path)


def _is_workload(path: str) -> bool:
    """Return whether a file is a workload of any version. An empty file counts, because a killed
    process may leave one.
    """
    try:
        start = content_of(path, len(MAGIC))
    except OSError:
        return False
    return not start or start.startswith(MAGIC.rstrip(b"0123456789\n"))


def read_workload(trace: str) -> Workload:
    """Read the workload next to a trace.

    Raises:
        TraceError: the workload is missing or damaged.
    """
    paths = sorted(glob.glob(glob.escape(workload_prefix(trace)) + "*"))
    if not paths:
        raise TraceError(
            f"{trace}: no workload next to it; record one with `queryprof run --record-workload`"
        )
    found: list[Execution] = []
    is_cut, size = False, 0
    for number, path in enumerate(paths):
        try:
            content = content_of(path)
        except OSError as error:
            raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from error
        size += len(content)
        if not content.startswith(MAGIC):
            raise TraceError(f"{path}: not a workload of this queryprof version")
        reader = _WorkloadReader(content, number)
        try:
            reader.read()
        except (struct.error, IndexError, ValueError, TypeError, MemoryError) as error:
            if reader.is_damaged:
                raise TraceError(f"{path}: is damaged after {reader.at:,} bytes") from error
        found += reader.executions()
        is_cut = is_cut or reader.is_cut
    found.sort(key=lambda one: one.start_unix_ns)
    return Workload(tuple(found), is_cut, size)


class _WorkloadReader:
    """Reads one workload file. An incomplete record at its end is ignored."""

    def __init__(self, content: bytes, process: int) -> None:
        self._content, self._process = content, process
        self._operations = _core.operation_names()
        self._texts: list[str] = [""]
        self._databases: dict[int, str] = {}
        self._paths: dict[int, CallPath] = {}
        self._executions: list[tuple[int, partial[Execution]]] = []
        self._rows: dict[int, int] = {}
        self.at = len(MAGIC)
        self.is_cut = False
        self.is_damaged = False

    def executions(self) -> Iterator[Execution]:
        """Yield the executions with their numbers of rows."""
        for serial, execution in self._executions:
            yield execution(rows=self._rows.get(serial))

    def read(self) -> None:
        """Read the whole file. Raises various exceptions if the file is damaged or incomplete."""
        while self.at < len(self._content):
            kind = self._byte()
            if kind == "T":
                self._texts.append(self._bytes().decode("utf-8", "surrogatepass"))
            elif kind == "C":
                (identity,) = self._take(IDENTITY)
                self._databases[identity] = str(self._value())
            elif kind == "P":
                number, frames = self._take(NUMBER)[0], self._take(NUMBER)[0]
                self._paths[number] = tuple(self._frame() for _ in range(frames))
            elif kind == "E":
                self.is_cut = True  # until the record is complete
                self._executions.append(self._execution())
                self.is_cut = False
            elif kind == "R":
                serial, rows = self._take(SERVED)
                self._rows[serial] = max(0, rows)
            elif kind == "L":
                self.is_cut = True
                return
            else:
                self.is_damaged = True
                raise ValueError(kind)

    def _take(self, form: struct.Struct) -> tuple[int, ...]:
        values = form.unpack_from(self._content, self.at)
        self.at += form.size
        return values

    def _byte(self) -> str:
        self.at += 1
        return chr(self._content[self.at - 1])

    def _bytes(self) -> bytes:
        (length,) = self._take(NUMBER)
        self.at += length
        if self.at > len(self._content):
            raise IndexError
        return self._content[self.at - length : self.at]

    def _frame(self) -> Frame:
        file, function = str(self._value()), str(self._value())
        return Frame(function, file, self._take(NUMBER)[0])

    def _execution(self) -> tuple[int, partial[Execution]]:
        """Return the serial number of an execution, and the execution without its number of
        rows.
        """
        fixed = self._take(FIXED)
        start, duration, connection, text, thread, operation, failed, state, path, serial = fixed
        parameters = self._parameters()
        if operation >= len(self._operations) or text >= len(self._texts):
            self.is_damaged = True
            raise ValueError(operation)
        return serial, partial(
            Execution,
            self._process,
            thread,
            connection,
            self._databases.get(connection),
            self._operations[operation],
            start,
            duration,
            self._texts[text] if text else None,
            parameters,
            bool(failed),
            state,
            self._paths.get(path, ()),
        )

    def _parameters(self, is_one: bool = False) -> Parameters:
        """Return the parameters of an execution.

        Args:
            is_one: whether these are the parameters of one execution in an executemany, which
                cannot be a list.
        """
        kind = self._byte()
        if kind in "0?":
            return None if kind == "0" else UnknownValue
        (count,) = self._take(NUMBER)
        if kind == "(":
            return tuple(self._value() for _ in range(count))
        if kind == "{":
            return {self._value(): self._value() for _ in range(count)}
        if kind == "[" and not is_one:
            return [self._parameters(is_one=True) for _ in range(count)]
        self.is_damaged = True
        raise ValueError(kind)

    def _value(self) -> object:
        kind = self._byte()
        if kind in "IF":
            return self._take(INTEGER if kind == "I" else FLOAT)[0]
        if kind in "SB":
            content = self._bytes()
            return content if kind == "B" else content.decode("utf-8", "surrogatepass")
        if kind not in "N?":
            self.is_damaged = True
            raise ValueError(kind)
        return None if kind == "N" else UnknownValue
