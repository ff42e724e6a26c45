"""The badge around ASGI applications."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

import pytest
from web.test_badge import PAGE, execute, wsgi

from queryprof.web.badge import Badge, _AsgiBadge, _WsgiBadge

pytestmark = pytest.mark.once


def test_asgi() -> None:
    sent: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        execute(4)
        headers = [(b"content-type", b"text/html"), (b"content-length", b"%d" % len(PAGE))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": PAGE[:5], "more_body": True})
        await send({"type": "http.response.body", "body": PAGE[5:]})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    badge = Badge(app, on=True)

    def ask(path: str, **more: Any) -> tuple[dict[bytes, bytes], bytes]:
        sent.clear()
        headers = [(b"host", b"localhost"), (b"accept", b"text/html")]
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "headers": headers,
            "client": ("127.0.0.1", 1),
            **more,
        }
        asyncio.run(badge(scope, None, send))
        return dict(sent[0]["headers"]), b"".join(one["body"] for one in sent[1:])

    headers, content = ask("/")
    assert content.startswith(PAGE)
    assert b"badge.js" in content
    assert headers[b"content-length"] == b"%d" % len(content)
    _, found = ask("/__queryprof__/requests")
    (request,) = json.loads(found)
    assert (request["queries"], request["status"]) == (4, 200)
    assert ask("/", client=("10.0.0.9", 1))[1] == PAGE
    assert b'src="//localhost/shop/__queryprof__/badge.js"' in ask("/shop/", root_path="/shop")[1]
    assert json.loads(ask("/shop/__queryprof__/requests", root_path="/shop")[1])
    asyncio.run(badge({"type": "lifespan"}, None, send))


def test_which_kind_an_application_is() -> None:
    async def function(scope: Any, receive: Any, send: Any) -> None: ...

    class Asgi:
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...

    assert isinstance(Badge(function, on=True), _AsgiBadge)
    assert isinstance(Badge(Asgi(), on=True), _AsgiBadge)
    assert isinstance(Badge(Asgi().__call__, on=True), _AsgiBadge)
    assert isinstance(Badge(partial(function), on=True), _AsgiBadge)
    assert isinstance(Badge(lambda scope, receive, send: None, on=True), _AsgiBadge)
    assert isinstance(Badge(lambda environ, start_response: [], on=True), _WsgiBadge)
    assert isinstance(Badge(wsgi(), on=True), _WsgiBadge)
