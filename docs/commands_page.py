"""Write docs/commands.md, the command line reference, from the commands themselves.

python docs/commands_page.py
"""

from __future__ import annotations

from pathlib import Path

import click

from queryprof.cli.main import cli

WIDTH = 100
BEGIN = """# Commands

Each command prints this reference with `--help`.

| exit status | meaning |
|---|---|
| 0 | success |
| 1 | a `--fail-on` condition or a check failed |
| 2 | wrong usage or input; a one-line message explains what to do |

`queryprof run` returns the exit status of the program.
"""


def page() -> str:
    """Return the page as Markdown."""
    context = click.Context(cli, info_name="queryprof", **cli.context_settings)
    parts = [BEGIN]
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        if command is not None and not command.hidden:
            parts.append(_section(command, f"queryprof {name}", context))
    return "\n".join(parts)


def _section(command: click.Command, name: str, parent: click.Context) -> str:
    """Return the section of a command and its subcommands."""
    context = click.Context(command, info_name=name.rpartition(" ")[2], parent=parent)
    context.max_content_width = context.terminal_width = WIDTH
    shown = command.get_help(context).replace("\b\n", "").rstrip()
    text = f"## {name}\n\n```text\n{shown}\n```\n"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            one = command.get_command(context, below)
            if one is not None:
                text += "\n" + _section(one, f"{name} {below}", context)
    return text


if __name__ == "__main__":
    Path(__file__).with_name("commands.md").write_text(page())
