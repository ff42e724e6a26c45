"""ASGI middleware: a span for each request of any application.

    app.add_middleware(queryprof.AsgiMiddleware)                    # Starlette, FastAPI
    application = queryprof.AsgiMiddleware(get_asgi_application())  # Django

(https://asgi.readthedocs.io/en/latest/specs/www.html)
"""

from __future__ import annotations

from queryprof.core import _core
from queryprof.core.span import span
from queryprof.web.routes import asgi_route
from queryprof.web.server_timing import server_timing_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Any

    Scope = MutableMapping[str, Any]

MARK = "queryprof.span"
"""Key in a request's scope: an outer middleware has already created the span."""


class AsgiMiddleware:
    """Wraps an application. While nothing is recorded, it only passes requests on.

    Args:
        app: the ASGI application.
        server_timing: add a Server-Timing header to responses, which browsers show. The header
            contains the database time and the number of queries before the headers are sent.
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
                await send(self._with_timing(message, running))

            scope[MARK] = True
            await running.watch(self.app(scope, receive, start))

    def _with_timing(
        self, message: MutableMapping[str, Any], running: span
    ) -> MutableMapping[str, Any]:
        """Return a message with the timing header. Invalid messages pass unchanged: the server
        refuses them.
        """
        try:
            if message["type"] == "http.response.start":
                running.set_status(message["status"])
                if self._server_timing:
                    timing = (b"server-timing", server_timing_header(*running.figures()).encode())
                    return {**message, "headers": [*message.get("headers", ()), timing]}
        except (TypeError, KeyError):
            pass
        return message


def _is_request(scope: Scope) -> bool:
    """Return whether this is a request without a span. The application refuses invalid scopes."""
    return (
        isinstance(scope, dict) and scope.get("type") in ("http", "websocket") and MARK not in scope
    )
