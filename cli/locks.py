"""`queryprof locks`: which processes hold a database's locks, now or in a trace."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import click

from queryprof.errors import QueryprofError
from queryprof.trace.header import is_trace

if TYPE_CHECKING:
    from rich.console import RenderableType

ENDING = ".qprof"
MAGIC = b"SQLite format 3\0"


@click.command()
@click.argument("file", type=click.Path())
def locks(file: str) -> None:
    """Show who holds a database's locks, or who held them in a trace.

    For a process that queryprof records, it also prints the line and the statement that took the
    write lock.
    """
    if os.path.isdir(file) or file.endswith(ENDING) or (os.path.isfile(file) and is_trace(file)):
        from queryprof.analysis.report import Report
        from queryprof.cli.reading import read_combined_profile
        from queryprof.report.terminal.locks import print_locks

        print_locks(Report(read_combined_profile(file)))
        return
    from queryprof.program.kernel_locks import find_lock_owners
    from queryprof.region.live import ActivityReader
    from queryprof.report.inert import escape_control_characters
    from queryprof.report.terminal.console import Text, console_for, print_parts
    from queryprof.report.terminal.top import held_lock_lines
    from queryprof.trace.attached import file_identity

    if not os.path.isfile(file):
        why = "not a file" if os.path.exists(file) else "no such file"
        raise QueryprofError(f"locks: {file}: {why}")
    identity = file_identity(os.stat(file))
    owners = find_lock_owners(os.path.realpath(file))
    watch = ActivityReader(pids={owner.pid for owner in owners})
    held = [
        one for process in watch.read_activity() for one in process.held if one.identity == identity
    ]
    watch.close()
    if not _may_be_database(file):
        if not owners:
            raise QueryprofError(f"locks: {file}: not a SQLite database or a trace")
        click.echo(
            f"queryprof: locks: {escape_control_characters(file)}: not a SQLite database,"
            " or encrypted",
            err=True,
        )
    parts: list[RenderableType] = []
    if not owners:
        parts.append(Text(f"{file}: no process has a lock on it"))
    for owner in owners:
        who = f"process {owner.pid}" if owner.pid else "a process of another container or user"
        command = (
            shlex.join(owner.command) if owner.command else "(no permission to read its command)"
        )
        parts.append(Text(f"{who} {owner.does}: {command}" if owner.pid else f"{who} {owner.does}"))
        for one in held:
            if one.pid == owner.pid:
                parts += held_lock_lines(one)
    print_parts(console_for(), parts)


def _may_be_database(path: str) -> bool:
    """Return whether a file is empty or begins like a database. SQLite accepts an empty file.

    Closing the file releases no lock, because this process holds no lock on it.
    """
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) in (MAGIC, b"")
