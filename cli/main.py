"""The command `queryprof`: its subcommands, and the only place where errors become exit codes."""

from __future__ import annotations

import gc
import io
import os
import sys
from typing import Any, TextIO

import click

from queryprof.cli.group import LazyGroup
from queryprof.cli.output import allow_closed_output, discard_closed_output
from queryprof.errors import QueryprofError
from queryprof.report.inert import escape_control_characters
from queryprof.version import __version__

EXIT_ERROR = 2

OBJECTS_BETWEEN_COLLECTIONS = 100_000
"""Threshold of the garbage collector. A large profile has many objects and no reference cycles.
With Python's default threshold, collections would take a quarter of a report's time.
"""


SECTIONS = {
    "Record": ("run", "attach"),
    "Read": ("report", "html", "top", "last", "locks"),
    "Explain": ("analyze",),
    "Compare": ("compare", "ab"),
    "Experiment": ("lab",),
    "Share": ("export", "merge", "snakeviz"),
    "Many hosts": ("fleet",),
    "Agents": ("mcp",),
    "This machine": ("doctor",),
}
RECORDING = frozenset({"run", "attach", "top", "ab", "lab"})


class Commands(LazyGroup):
    """All commands."""

    def invoke(self, ctx: click.Context) -> Any:
        with allow_closed_output():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            more = [
                f"Did you mean {like}?"
                for like in get_close_matches(args[0], self.list_commands(ctx), 1)
            ]
            if args[0] == "help":
                more = [f"For help: {' '.join(['queryprof', *args[1:2], '--help'])}"]
            elif args[0].endswith(".py"):
                more.append(f"To record a program: queryprof run {args[0]}")
            elif os.path.isfile(args[0]):
                more.append(f"To read a trace: queryprof report {args[0]}")
            raise click.UsageError(" ".join([error.message, *more]), ctx) from None


@click.group(
    cls=Commands,
    sections=SECTIONS,
    recording=RECORDING,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, package_name="queryprof")
def cli() -> None:
    """Find the few SQL statements, and the lines of Python, that make a program slow."""


def main() -> None:
    """Run the command line. An error is one line on stderr and exit status 2."""
    _open_missing_streams()
    _escape_unencodable(sys.stdout)
    _escape_unencodable(sys.stderr)
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    try:
        cli.main(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        import signal

        from queryprof.cli.command import end_by_signal

        end_by_signal(signal.SIGINT)  # a shell ends its loop only if the signal ended the command
    except click.ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # click 8.2 and newer
            error.show()
        else:
            click.echo(_one_line_error(error), err=True)
        sys.exit(EXIT_ERROR)
    except QueryprofError as error:
        click.echo(f"queryprof: {escape_control_characters(str(error))}", err=True)
        sys.exit(EXIT_ERROR)
    except OSError as error:
        discard_closed_output()
        click.echo(f"queryprof: {escape_control_characters(str(error))}", err=True)
        sys.exit(EXIT_ERROR)


def _one_line_error(error: click.ClickException) -> str:
    """Return the error in one line, with the command that prints the help."""
    message = " ".join(error.format_message().split())
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return f"queryprof: {escape_control_characters(message)}"
    command = context.command_path.partition(" ")[2]
    helps = f"({context.command_path} --help)"
    return " ".join(
        [
            f"queryprof: {command}:" if command else "queryprof:",
            escape_control_characters(message),
            helps,
        ]
    )


def _open_missing_streams() -> None:
    """Open missing standard streams on the null device. A command started from here still lacks
    these streams.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            stream = open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, stream)


def _escape_unencodable(stream: TextIO) -> None:
    """Make a stream escape characters that its encoding cannot represent."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
