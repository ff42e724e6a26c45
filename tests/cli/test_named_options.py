"""Messages name only options that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import queryprof
from queryprof.cli import main

pytestmark = pytest.mark.once

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
OTHERS = frozenset({"--help", "--password"})
"""Click's own option, and an option of database clients."""

OF_OTHER_TOOLS = ("pytest_plugin", "testing", "notebook")
"""Folders whose options are those of pytest, Django's runner and IPython."""


def options_of(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.params:
        yield from parameter.opts
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from options_of(inner, click.Context(inner, parent=context))


def test_messages_name_existing_options() -> None:
    (group,) = (one for one in vars(main).values() if isinstance(one, click.Group))
    known = OTHERS | set(options_of(group, click.Context(group)))
    folders = [Path(queryprof.__file__).parent, Path(main.__file__).parent]
    named = {
        (option, file.name)
        for file in {file for folder in folders for file in folder.rglob("*.py")}
        if not any(name in file.parts for name in OF_OTHER_TOOLS)
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        for option in OPTION.findall(node.value)
    }
    assert len(named) > 50
    assert {one for one in named if one[0] not in known} == set()
