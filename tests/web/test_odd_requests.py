"""Requests and responses that violate PEP 3333 or ASGI: the middlewares pass the error on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import queryprof

pytestmark = pytest.mark.once

SCOPES: list[Any] = [
    {"type": "http"},
    {"type": "http", "path": 5, "method": None},
    {"type": "http", "path": b"/x"},
    {"type": "http", "path": None, "root_path": None, "route": 5, "endpoint": 3},
    {},
    None,
    5,
    {"type": 5},
]
MESSAGES: list[Any] = [
    {},
    None,
    {"type": "http.response.start"},
    {"type": "http.response.start", "status": "x"},
    {"type": "http.response.start", "status": 200, "headers": None},
]
ENVIRONS: list[Any] = [
    {},
    {"PATH_INFO": None},
    {"SCRIPT_NAME": None},
    {"PATH_INFO": b"/x"},
    {"REQUEST_METHOD": 5},
    {"PATH_INFO": 5},
    {"PATH_INFO": "/\udc80\0"},
    None,
]
STATUSES: list[tuple[Any, Any]] = [("200 OK", []), (200, []), (b"200", ()), (None, None), ("", 5)]


def outcome(call: Any) -> object:
    try:
        return call()
    except Exception as error:
        return type(error), error.args


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("message", MESSAGES)
def test_asgi(scope: Any, message: Any) -> None:
    def result() -> object:
        sent: list[Any] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send(message)

        async def send(message: Any) -> None:
            has_timing = isinstance(message, dict) and any(
                name == b"server-timing" for name, _ in message.get("headers") or ()
            )
            sent.append("with a header" if has_timing else message)

        wrapped = queryprof.AsgiMiddleware(app, server_timing=True)
        request: Any = dict(scope) if isinstance(scope, dict) else scope
        return outcome(lambda: asyncio.run(wrapped(request, None, send))), sent

    bare = result()
    with queryprof.profile():
        assert result() == bare


@pytest.mark.parametrize("environ", ENVIRONS)
@pytest.mark.parametrize("start", STATUSES)
def test_wsgi(environ: Any, start: tuple[Any, Any]) -> None:
    def result() -> object:
        begun: list[Any] = []

        def app(environ: Any, start_response: Any) -> list[bytes]:
            start_response(*start)
            return [b"x"]

        wrapped = queryprof.WsgiMiddleware(app, server_timing=True)
        request: Any = dict(environ) if isinstance(environ, dict) else environ
        found = outcome(lambda: wrapped(request, lambda status, headers: begun.append(status)))
        return found, begun

    bare = result()
    with queryprof.profile():
        assert result() == bare
