"""Groups of commands. A group imports a command's module only on use, because `run` must start
quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from queryprof.errors import QueryprofError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class LazyGroup(click.Group):
    """A group whose commands are in their own modules.

    Args:
        sections: commands by heading, in the order of the help. A command is "name:module", or
            "name" if its module has the same name.
        recording: commands that record, or that read recordings of this machine's processes.
    """

    def __init__(
        self,
        *arguments: Any,
        sections: Mapping[str, Sequence[str]],
        recording: frozenset[str] = frozenset(),
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self.recording = recording
        self._sections = {
            heading: [one.partition(":")[0] for one in ones] for heading, ones in sections.items()
        }
        places = [one.partition(":") for ones in sections.values() for one in ones]
        self._modules = {name: module or name for name, _, module in places}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of the help."""
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command; None if the name is unknown."""
        module = self._modules.get(cmd_name)
        if module is None:
            return None
        from queryprof.core.absence import absence_reason

        if cmd_name in self.recording and (reason := absence_reason()):
            return _unavailable_command(cmd_name, reason)
        command: click.Command = getattr(import_module(f"queryprof.cli.{module}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of commands below each heading."""
        widest = max(map(len, self._modules))
        limit = formatter.width - 6 - widest
        for heading, names in self._sections.items():
            found = [(name.ljust(widest), self.get_command(ctx, name)) for name in names]
            rows = [(name, one.get_short_help_str(limit)) for name, one in found if one]
            with formatter.section(heading):
                formatter.write_dl(rows)


def _unavailable_command(name: str, reason: str) -> click.Command:
    """Return a replacement for a command if this installation cannot record."""
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}

    @click.command(
        name, context_settings=anything, help="Not available: this installation cannot record."
    )
    def command() -> None:
        raise QueryprofError(f"{name}: this installation cannot record: {reason}")

    return command
