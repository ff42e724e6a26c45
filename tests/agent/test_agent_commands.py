"""Commands recorded by an agent end together with all processes that they started."""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import Event
from time import sleep
from typing import Any

import pytest
from agent.agents import PYTHON, Agent, talk

anyio = pytest.importorskip("anyio")
pytestmark = pytest.mark.once

PROGRAM = """
import os, sqlite3, subprocess, sys, time
sqlite3.connect(":memory:").execute("SELECT 1")
print("x" * 1_000_000)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("pids", "w").write(f"{os.getpid()} {child.pid}")
time.sleep(600)
"""


def lives(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_a_command_ends_with_the_client() -> None:
    Path("slow.py").write_text(PROGRAM)
    command = f"{PYTHON} slow.py"

    async def work(agent: Agent) -> None:
        async with anyio.create_task_group() as tasks:

            async def record() -> None:
                await agent("record", command=command)

            tasks.start_soon(record)
            while "pids" not in os.listdir() or not Path("pids").read_text():  # noqa: ASYNC240
                await anyio.sleep(0.05)
            tasks.cancel_scope.cancel()

    talk(work, command)
    for pid in map(int, Path("pids").read_text().split()):
        while lives(pid):
            sleep(0.05)


def test_a_call_that_is_cancelled_ends_its_command_alone() -> None:
    """Another command, which waits for the first one's end, continues."""
    from queryprof.agent.recording import AllowedCommands
    from queryprof.agent.server import McpTools

    Path("slow.py").write_text(PROGRAM)
    Path("other.py").write_text(
        "import os, sqlite3, time\n"
        "while not os.path.exists('go'): time.sleep(0.02)\n"
        "sqlite3.connect(':memory:').execute('SELECT 1').fetchall()\n"
    )
    slow, other = f"{PYTHON} slow.py", f"{PYTHON} other.py"
    tools = McpTools(None, AllowedCommands([slow, other], os.getcwd()))  # type: ignore[arg-type]
    answers: list[dict[str, Any]] = []

    async def second() -> None:
        answers.append(json.loads(await tools.record(other)))

    async def main() -> None:
        with anyio.fail_after(180):
            async with anyio.create_task_group() as others:
                others.start_soon(second)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(tools.record, slow)
                    while not os.path.exists("pids") or not Path("pids").read_text():  # noqa: ASYNC240
                        await anyio.sleep(0.05)
                    tasks.cancel_scope.cancel()
                for pid in map(int, Path("pids").read_text().split()):  # noqa: ASYNC240
                    while lives(pid):
                        await anyio.sleep(0.05)
                Path("go").touch()  # noqa: ASYNC240

    anyio.run(main)
    assert [one["exit_status"] for one in answers] == [0]


@pytest.mark.parametrize("with_parameters", [False, True])
def test_values_are_kept_only_where_the_user_wants_that(with_parameters: bool) -> None:
    program = (
        "import sqlite3; db = sqlite3.connect('a.db'); db.execute('CREATE TABLE t (a)')\n"
        "for n in range(50): db.execute('SELECT a FROM t WHERE a = ?', ('a secret value',))\n"
    )
    Path("app.py").write_text(program)
    command = f"{PYTHON} app.py"
    from queryprof.agent.answers import TraceAnswers
    from queryprof.agent.recording import AllowedCommands
    from queryprof.agent.server import mcp_server

    commands = AllowedCommands([command], os.getcwd(), with_parameters)
    made = mcp_server(TraceAnswers("."), commands)
    trace = commands.record(command, Event())["trace"]
    assert (b"a secret value" in Path(trace).read_bytes()) == with_parameters
    (record,) = (one for one in anyio.run(made.list_tools) if one.name == "record")
    assert (("keeps no values" in record.description) == with_parameters) is False
