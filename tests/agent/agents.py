"""A client of the Model Context Protocol, and a server of `queryprof mcp` for it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import pytest

anyio = pytest.importorskip("anyio")
mcp = pytest.importorskip("mcp")

PYTHON = sys.executable


class Agent:
    """A client that returns the text or the JSON of each answer."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def tools(self) -> dict[str, Any]:
        return {tool.name: tool for tool in (await self._client.list_tools()).tools}

    async def refused(self, name: str, **arguments: object) -> str:
        result = await self._client.call_tool(name, arguments)
        assert result.is_error
        return str(result.content[0].text)

    async def __call__(self, name: str, **arguments: object) -> Any:
        result = await self._client.call_tool(name, arguments)
        text = result.content[0].text
        assert not result.is_error, text
        return json.loads(text)


def talk(work: Callable[[Agent], Any], *commands: str) -> None:
    """Let a client work with a server in the working directory."""
    allowed = [part for command in commands for part in ("--record", command)]
    server = mcp.StdioServerParameters(
        command=PYTHON, args=["-P", "-m", "queryprof", "mcp", *allowed], env=dict(os.environ)
    )

    async def main() -> None:
        with anyio.fail_after(180):
            async with mcp.Client(mcp.stdio_client(server, errlog=nowhere)) as client:
                await work(Agent(client))

    with open(os.devnull, "w") as nowhere:
        anyio.run(main)
