"""`queryprof mcp`: serve agents and editors through the Model Context Protocol."""

from __future__ import annotations

import os
import signal
import sys

import click

from queryprof.cli.fleet_extra import extra_imports
from queryprof.core.absence import absence_reason
from queryprof.errors import QueryprofError


@click.command()
@click.option(
    "--directory",
    type=click.Path(),
    default=".",
    show_default=True,
    help="Directory of traces and databases; the agent reads nothing outside it.",
)
@click.option(
    "--record",
    "commands",
    multiple=True,
    metavar="COMMAND",
    help="Exact command that the agent may record (repeatable).",
)
@click.option(
    "--parameters",
    "with_parameters",
    is_flag=True,
    help="Record the values of parameters (the `prove` tool needs them).",
)
def mcp(directory: str, commands: tuple[str, ...], with_parameters: bool) -> None:
    """Serve traces to an AI agent.

    The server uses the Model Context Protocol on standard input and output. The tools are findings,
    finding, plan, prove, compare and locks. With --record, the agent can also record the commands
    that you name, and no others.
    """
    if not os.path.isdir(directory):
        raise QueryprofError(f"mcp: {directory}: no such directory")
    if commands and (reason := absence_reason()):
        raise QueryprofError(f"mcp: --record: this installation cannot record: {reason}")
    with extra_imports("mcp"):
        from queryprof.agent.answers import TraceAnswers
        from queryprof.agent.recording import AllowedCommands
        from queryprof.agent.server import mcp_server

    answers = TraceAnswers(directory)
    recorded = AllowedCommands(commands, answers.directory, with_parameters)

    def end(*_: object) -> None:
        recorded.end()
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    try:
        mcp_server(answers, recorded).run("stdio")
    finally:
        recorded.end()
