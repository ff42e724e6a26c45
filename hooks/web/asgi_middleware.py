"""ASGI middleware (https://asgi.readthedocs.io/en/latest/specs/www.html): a span for each request
of any application.

    app.add_middleware(queryprof.AsgiMiddleware)              # Starlette, FastAPI
    application = queryprof.AsgiMiddleware(get_asgi_application())  # Django
"""

from __future__ import annotations

from queryprof.core import _core
from queryprof.core.span import span
from queryprof.hooks.web.routes import asgi_route
from queryprof.hooks.web.server_timing import server_timing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Any

    Scope = MutableMapping[str, Any]

MARK = "queryprof.span"
"""A key in a request's scope: an outer middleware has made its span."""


class AsgiMiddleware:
    """Wraps an application; while nothing is recorded, it only passes requests on.

    Args:
        app: the ASGI application.
        server_timing: whether responses get a Server-Timing header, which browsers show: the
            database time and the number of queries until the headers are sent.
    """

    def __init__(self, app: Any, *, server_timing: bool = False) -> None:
        self.app = app
        self._server_timing = server_timing

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if not _core.is_on() or not _is_request(scope):
            await self.app(scope, receive, send)
            return
        method = scope.get("method", "WEBSOCKET")
        with span(f"{method} {asgi_route(self.app, scope)}") as running:

            async def start(message: MutableMapping[str, Any]) -> None:
                await send(self._noted(message, running))

            scope[MARK] = True
            await running.watch(self.app(scope, receive, start))

    def _noted(self, message: MutableMapping[str, Any], running: span) -> MutableMapping[str, Any]:
        """A message for the server, with the time in its header; what is none, the server
        refuses.
        """
        try:
            if message["type"] == "http.response.start":
                running.set_status(message["status"])
                if self._server_timing:
                    timing = (b"server-timing", server_timing(*running.figures()).encode())
                    return {**message, "headers": [*message.get("headers", ()), timing]}
        except (TypeError, KeyError):
            pass
        return message


def _is_request(scope: Scope) -> bool:
    """Whether it is a request without a span; what is no scope, the application refuses."""
    return (
        isinstance(scope, dict) and scope.get("type") in ("http", "websocket") and MARK not in scope
    )
