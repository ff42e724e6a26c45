"""`queryprof mcp`: answers agents and editors through the Model Context Protocol."""

from __future__ import annotations

import os
import signal
import sys

import click

from queryprof.cli.fleet_extra import extra
from queryprof.core.absence import absence
from queryprof.errors import QueryprofError


@click.command()
@click.option(
    "--directory",
    type=click.Path(),
    default=".",
    show_default=True,
    help="Where traces and databases are: nothing outside of it is read.",
)
@click.option(
    "--record",
    "commands",
    multiple=True,
    metavar="COMMAND",
    help="A command that may be recorded, word for word; may be given more than once.",
)
@click.option(
    "--parameters",
    "with_parameters",
    is_flag=True,
    help="Traces of --record keep the values of parameters, which the tool prove needs.",
)
@click.option(
    "--limit",
    "limit_s",
    type=click.FloatRange(min=1),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="How long a command may take.",
)
def mcp(directory: str, commands: tuple[str, ...], with_parameters: bool, limit_s: float) -> None:
    """Answers an agent's questions about traces, on standard input and output.

    Its tools read: findings, finding, plan, prove, compare, locks; with --record it records these
    commands, and no others.
    """
    if not os.path.isdir(directory):
        raise QueryprofError(f"mcp: {directory}: there is no such directory")
    if commands and (reason := absence()):
        raise QueryprofError(f"mcp: --record: nothing is recorded here: {reason}")
    with extra("mcp"):
        from queryprof.agent.answers import Answers
        from queryprof.agent.recording import Commands
        from queryprof.agent.server import server

    answers = Answers(directory)
    recorded = Commands(commands, answers.directory, limit_s, with_parameters)

    def end(*_: object) -> None:
        recorded.end()
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    try:
        server(answers, recorded).run("stdio")
    finally:
        recorded.end()
