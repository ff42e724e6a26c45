"""WSGI middleware (PEP 3333): a span for each request of any application.

app.wsgi_app = queryprof.WsgiMiddleware(app.wsgi_app)           # Flask
application = queryprof.WsgiMiddleware(get_wsgi_application())  # Django
"""

from __future__ import annotations

from queryprof.core import _core
from queryprof.core.span import span
from queryprof.web.routes import wsgi_route
from queryprof.web.server_timing import server_timing_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

MARK = "queryprof.span"
"""Key in a request's environ: an outer middleware has already created the span."""


class WsgiMiddleware:
    """Wraps an application. While nothing is recorded, it only passes requests on.

    Args:
        app: the WSGI application.
        server_timing: add a Server-Timing header to responses, which browsers show. The header
            contains the database time and the number of queries before the headers are sent.
    """

    def __init__(self, app: Any, *, server_timing: bool = False) -> None:
        self.app = app
        self._server_timing = server_timing

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if not _core.is_on() or not isinstance(environ, dict) or MARK in environ:
            return self.app(environ, start_response)  # type: ignore[no-any-return]
        request = _Request(self, environ, start_response)
        return request.run(environ)


class _Request:
    """One request, from the call of the application to the end of its response.

    The span is entered in the server's context rather than in a copy, so that context variables set
    by the application stay there.
    """

    def __init__(
        self, middleware: WsgiMiddleware, environ: dict[str, Any], start_response: Any
    ) -> None:
        self._app = middleware.app
        self._server_timing = middleware._server_timing  # noqa: SLF001
        self._start_response = start_response
        self._span = span(f"{environ.get('REQUEST_METHOD', '?')} {wsgi_route(self._app, environ)}")
        self._ended = False

    def run(self, environ: dict[str, Any]) -> Iterable[bytes]:
        environ[MARK] = True
        self._span.__enter__()
        try:
            body: Iterable[bytes] = self._app(environ, self._start)
        except BaseException as error:
            self.end(error)
            raise
        # A server may send a file in a special way, so it must get the wrapper itself.
        wrapper = environ.get("wsgi.file_wrapper")
        is_file = isinstance(wrapper, type) and isinstance(body, wrapper)
        if is_file or isinstance(body, (list, tuple)):
            self.end()
            return body
        return (_SizedBody if hasattr(type(body), "__len__") else Body)(self, body)

    def end(self, error: BaseException | None = None) -> None:
        """End the span, once."""
        if not self._ended:
            self._ended = True
            self._span.__exit__(type(error) if error else None, error, None)

    def _start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        code = str(status)[:3]
        if code.isdecimal():
            self._span.set_status(int(code))
        if self._server_timing and isinstance(headers, list):
            headers = [*headers, ("Server-Timing", server_timing_header(*self._span.figures()))]
        if exc_info is None:
            return self._start_response(status, headers)
        return self._start_response(status, headers, exc_info)


class Body:
    """A response that is produced while it is sent.

    Args:
        request: the request, which ends with the response.
    """

    def __init__(self, request: Any, body: Iterable[bytes]) -> None:
        self._request = request
        self._body = body
        self._parts: Iterator[bytes] | None = None

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if self._parts is None:
            self._parts = iter(self._body)
        try:
            return next(self._parts)
        except StopIteration:
            raise
        except BaseException as error:
            self._request.end(error)
            raise

    def __getattr__(self, name: str) -> object:
        return getattr(self._body, name)

    def close(self) -> None:
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            self._request.end()


class _SizedBody(Body):
    """A response whose length the server reads for the Content-Length header."""

    def __len__(self) -> int:
        return len(self._body)  # type: ignore[arg-type]
