"""The command `queryprof`: its subcommands, and the one place where errors become exit codes."""

from __future__ import annotations

import gc
import io
import os
import sys
from importlib import import_module
from typing import Any, TextIO

import click

from queryprof.cli.output import drop_output, output_to_reader
from queryprof.errors import QueryprofError
from queryprof.report.inert import visible
from queryprof.version import __version__

EXIT_ERROR = 2

OBJECTS_BETWEEN_COLLECTIONS = 100_000
"""A large profile is many objects, and none in a cycle: to look for cycles as often as Python does
by itself takes a quarter of a report's time."""


COMMANDS = (
    "run",
    "attach",
    "report",
    "html",
    "export",
    "snakeviz",
    "top",
    "locks",
    "analyze",
    "compare",
    "ab",
    "replay",
    "tune",
    "scenario",
    "merge",
    "fleet",
    "ship",
    "prometheus",
    "mcp",
    "clean",
    "doctor",
)


RECORDING = frozenset(
    {"run", "attach", "clean", "top", "ab", "replay", "tune", "scenario", "ship", "prometheus"}
)
"""Commands that record, or read what processes of this machine record."""


class Commands(click.Group):
    """The commands, each in the module of its name, which is imported only when used: `run` must
    start the program soon.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        from queryprof.core.absence import absence

        if cmd_name in RECORDING and (reason := absence()):
            return _absent(cmd_name, reason)
        command: click.Command = getattr(import_module(f"queryprof.cli.{cmd_name}"), cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        with output_to_reader():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            more = [f"Did you mean {like}?" for like in get_close_matches(args[0], COMMANDS, 1)]
            if args[0].endswith(".py"):
                more.append(f"To record a program: queryprof run {args[0]}")
            elif os.path.isfile(args[0]):
                more.append(f"To read a trace: queryprof report {args[0]}")
            raise click.UsageError(" ".join([error.message, *more]), ctx) from None


def _absent(name: str, reason: str) -> click.Command:
    """What stands in the place of a command where nothing can be recorded."""
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}

    @click.command(name, context_settings=anything, help="Not here: nothing can be recorded.")
    def command() -> None:
        raise QueryprofError(f"{name}: nothing is recorded here: {reason}")

    return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="queryprof")
def cli() -> None:
    """Finds the few SQL statements and call sites that hold a Python program back."""


def main() -> None:
    """Runs the command line; an error is one line on stderr and exit status 2."""
    _open_missing_streams()
    _print_anything(sys.stdout)
    _print_anything(sys.stderr)
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    try:
        cli.main(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        import signal

        from queryprof.cli.command import end_by

        end_by(signal.SIGINT)  # a shell's loop ends with what has ended so
    except click.ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # of click from 8.2 on
            error.show()
        else:
            click.echo(_in_one_line(error), err=True)
        sys.exit(EXIT_ERROR)
    except QueryprofError as error:
        click.echo(f"queryprof: {visible(str(error))}", err=True)
        sys.exit(EXIT_ERROR)
    except OSError as error:
        drop_output()
        click.echo(f"queryprof: {visible(str(error))}", err=True)
        sys.exit(EXIT_ERROR)


def _in_one_line(error: click.ClickException) -> str:
    """What was wrong, and where to see what is right."""
    message = " ".join(error.format_message().split())
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return f"queryprof: {visible(message)}"
    command = context.command_path.partition(" ")[2]
    helps = f"({context.command_path} --help)"
    return " ".join(
        [f"queryprof: {command}:" if command else "queryprof:", visible(message), helps]
    )


def _open_missing_streams() -> None:
    """Gives this process streams where it was started without; a command that it starts
    has none.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            stream = open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, stream)


def _print_anything(stream: TextIO) -> None:
    """Makes a stream write characters that are not in its encoding as escapes."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
