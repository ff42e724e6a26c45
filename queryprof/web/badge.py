"""`queryprof.Badge(app)`: WSGI and ASGI middleware that shows a request's queries in its page.

For development: it is off unless QUERYPROF_BADGE=1 is set, or `on=True` is given.
"""

from __future__ import annotations

import inspect
import os

from queryprof.core.absence import is_core_absent
from queryprof.web.routes import asgi_route, wsgi_route
from queryprof.web.wsgi_middleware import Body

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping
    from typing import Any

    from queryprof.web.badge_requests import RecentRequests, RunningRequest

    Scope = MutableMapping[str, Any]

LOOPBACK = ("127.0.0.1", "::1")

BADGE_VARIABLE = "QUERYPROF_BADGE"
SWITCHED_ON = ("1", "true", "yes", "on")

SENDING = ("http.response.pathsend", "http.response.zerocopysend")
"""ASGI extensions that send a file as the body, so that the badge cannot add its element."""

_PREFIX = "/__queryprof__/"
_MARK = "queryprof.span"


def Badge(  # noqa: N802 it is used as a class
    app: Any,
    *,
    on: bool | None = None,
    clients: Iterable[str] = LOOPBACK,
    hosts: Iterable[str] = (),
) -> Any:
    """Wrap a WSGI or an ASGI application: pages get a small badge.

    The badge shows each request's queries, database time, queries in loops and worst line. A click
    opens the request's card.

    Args:
        app: the application. It is returned unchanged while the badge is off.
        on: None to check for QUERYPROF_BADGE=1.
        clients: client addresses that get the badge. Statements and source are for developers only.
        hosts: names of the server, in addition to localhost, *.localhost and addresses. Other names
            are refused, because a foreign page may have mapped its host name to a loopback address.

    Raises:
        TypeError: `app` is not an application, or clients or hosts are not lists.
    """
    if not callable(app):
        raise TypeError(f"Badge: {app!r} is not callable; pass a WSGI or ASGI application")
    if isinstance(clients, str) or isinstance(hosts, str):
        raise TypeError("Badge: clients and hosts are lists")
    wanted = os.environ.get(BADGE_VARIABLE, "").lower() in SWITCHED_ON if on is None else on
    if not wanted or is_core_absent():
        return app
    made = _AsgiBadge if _is_asgi(app) else _WsgiBadge
    return made(app, frozenset(clients), frozenset(name.lower() for name in hosts))


def _is_asgi(app: Any) -> bool:
    """Return whether an application takes a scope and two functions."""
    call = app if inspect.isroutine(app) else getattr(type(app), "__call__", app)  # noqa: B004
    if inspect.iscoroutinefunction(call):
        return True
    try:
        taken = inspect.signature(app).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [one for one in taken if one.default is one.empty and one.kind in POSITIONAL]
    return len(needed) == 3


POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class _Badge:
    """The common part of the WSGI and the ASGI badge."""

    def __init__(self, app: Any, clients: frozenset[str], hosts: frozenset[str]) -> None:
        from queryprof.web.badge_requests import requests

        self.app = app
        self._clients, self._hosts = clients, hosts
        self._requests: RecentRequests = requests

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "app":
            raise AttributeError(name)
        return getattr(self.app, name)  # for example Flask's app.config

    def _is_for(self, client: object, host: str) -> bool:
        """Return whether a request comes from a developer, to a known name of the server."""
        from ipaddress import ip_address
        from urllib.parse import urlsplit

        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name != "localhost" and not name.endswith(".localhost") and name not in self._hosts:
            try:
                ip_address(name)
            except ValueError:
                return False
        # an IPv6 socket reports an IPv4 client with this prefix
        address = str(client).removeprefix("::ffff:")
        return address in self._clients


class _WsgiBadge(_Badge):
    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if not self._is_handled(environ):
            return self.app(environ, start_response)  # type: ignore[no-any-return]
        path = environ.get("PATH_INFO", "")
        if path.startswith(_PREFIX):
            return self._answer_own_path(path, environ, start_response)
        method = environ.get("REQUEST_METHOD", "?")
        route = f"{method} {wsgi_route(self.app, environ)}"
        running = self._requests.begin(f"{method} {_decode_wsgi_path(path)}", route)
        environ[_MARK] = True
        response = _WsgiResponse(self._requests, running, environ, start_response)
        return response.run(self.app)

    def _is_handled(self, environ: Any) -> bool:
        if not isinstance(environ, dict) or _MARK in environ:
            return False
        host = environ.get("HTTP_HOST") or environ.get("SERVER_NAME", "")
        return self._is_for(environ.get("REMOTE_ADDR"), host)

    def _answer_own_path(
        self, path: str, environ: dict[str, Any], start_response: Any
    ) -> list[bytes]:
        from queryprof.web.badge_pages import answer_badge_path

        query = environ.get("QUERY_STRING", "")
        found = answer_badge_path(path.removeprefix(_PREFIX), query, self._requests)
        start_response("200 OK" if found.status == 200 else "404 Not Found", found.headers)
        return [b"" if environ.get("REQUEST_METHOD") == "HEAD" else found.content]


class _WsgiResponse:
    """One response. Adds the badge's element to the response, and ends the request."""

    def __init__(
        self,
        requests: RecentRequests,
        running: RunningRequest,
        environ: dict[str, Any],
        start_response: Any,
    ) -> None:
        self._requests, self._running = requests, running
        self._environ, self._start_response = environ, start_response
        self._added = b""

    def run(self, app: Any) -> Iterable[bytes]:
        try:
            body: Iterable[bytes] = app(self._environ, self._start)
        except BaseException as error:
            self._requests.end(self._running, error)
            raise
        if type(body) in (list, tuple):
            # the body is complete, and the browser may request the figures as soon as it has the
            # page
            self.end()
            return [*body, self.element_to_add()] if self._added else body
        wrapper = self._environ.get("wsgi.file_wrapper")
        if isinstance(wrapper, type) and isinstance(body, wrapper) and not self._added:
            self.end()
            return body  # a server may send a file in a special way
        return _WsgiBody(self, body)

    def end(self, error: BaseException | None = None) -> None:
        self._requests.end(self._running, error)

    def element_to_add(self) -> bytes:
        """Return the element that must be added to the page. Further calls return nothing."""
        found, self._added = self._added, b""
        return found

    def _start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        from queryprof.web.injection import badge_element, changed_headers, is_page, wants_page

        code = int(str(status)[:3]) if str(status)[:3].isdecimal() else 0
        self._running.request.status = code or None
        environ = self._environ
        sent = {
            name[5:].replace("_", "-").lower(): value
            for name, value in environ.items()
            if name.startswith("HTTP_")
        }
        self._added = b""
        headers = list(headers)  # servers also accept iterators
        if wants_page(environ.get("REQUEST_METHOD", ""), sent) and is_page(code, headers):
            root = environ.get("SCRIPT_NAME", "")
            host = environ.get("HTTP_HOST", "")
            self._added = badge_element(
                self._running.request.number, host, _decode_wsgi_path(root), headers
            )
            headers = changed_headers(headers, len(self._added))
        if exc_info is None:
            return self._start_response(status, headers)
        return self._start_response(status, headers, exc_info)


class _WsgiBody(Body):
    """The application's response, followed by the element."""

    def __init__(self, response: _WsgiResponse, body: Iterable[bytes]) -> None:
        super().__init__(response, body)
        self._response = response

    def __next__(self) -> bytes:
        try:
            return super().__next__()
        except StopIteration:
            self._response.end()
            if added := self._response.element_to_add():
                return added
            raise


class _AsgiBadge(_Badge):
    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if not self._is_handled(scope):
            await self.app(scope, receive, send)
            return
        path = scope.get("path", "")
        root = scope.get("root_path", "")
        inside = path[len(root) :] if root and path.startswith(f"{root}/") else path
        if inside.startswith(_PREFIX):
            await self._answer_own_path(inside, scope, send)
            return
        method = scope.get("method", "?")
        route = f"{method} {asgi_route(self.app, scope)}"
        running = self._requests.begin(f"{method} {path}", route)
        scope[_MARK] = True
        extensions = scope.get("extensions") or {}
        sends_otherwise = not extensions.keys().isdisjoint(SENDING)
        if sends_otherwise:  # pass on the scope itself: other code reads values written to it
            scope["extensions"] = {n: e for n, e in extensions.items() if n not in SENDING}
        try:
            await running.span.watch(
                self.app(scope, receive, self._wrap_send(scope, send, running))
            )
        except BaseException as error:
            self._requests.end(running, error)
            raise
        finally:
            if sends_otherwise:
                scope["extensions"] = extensions
        self._requests.end(running)

    def _is_handled(self, scope: Scope) -> bool:
        is_request = isinstance(scope, dict) and scope.get("type") == "http"
        if not is_request or _MARK in scope or not scope.get("client"):
            return False
        hosts = [value for name, value in scope.get("headers", ()) if name.lower() == b"host"]
        return self._is_for(scope["client"][0], hosts[0].decode("latin-1") if hosts else "")

    def _wrap_send(self, scope: Scope, send: Any, running: RunningRequest) -> Any:
        from queryprof.web.injection import badge_element, changed_headers, is_page, wants_page

        added = b""

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal added
            kind = message.get("type") if isinstance(message, dict) else None
            if kind == "http.response.start":
                # the headers may be an iterable that can be read only once
                given = list(message.get("headers", ()))
                message = {**message, "headers": given}
                headers = [
                    (bytes(name).decode("latin-1"), bytes(value).decode("latin-1"))
                    for name, value in given
                ]
                sent = {
                    name.decode("latin-1").lower(): value.decode("latin-1")
                    for name, value in scope.get("headers", ())
                }
                code = message.get("status", 0)
                running.request.status = code
                if wants_page(scope.get("method", ""), sent) and is_page(code, headers):
                    root = scope.get("root_path", "")
                    host = sent.get("host", "")
                    added = badge_element(running.request.number, host, root, headers)
                    changed = changed_headers(headers, len(added))
                    encoded = [
                        (n.lower().encode("latin-1"), v.encode("latin-1")) for n, v in changed
                    ]
                    message = {**message, "headers": encoded}
            elif kind == "http.response.body" and not message.get("more_body"):
                self._requests.end(running)  # before the browser can request the figures
                if added:
                    message = {**message, "body": bytes(message.get("body", b"")) + added}
                    added = b""
            await send(message)

        return sending

    async def _answer_own_path(self, path: str, scope: Scope, send: Any) -> None:
        from queryprof.web.badge_pages import answer_badge_path

        query = scope.get("query_string", b"").decode("latin-1")
        found = answer_badge_path(path.removeprefix(_PREFIX), query, self._requests)
        headers = [(n.lower().encode(), v.encode()) for n, v in found.headers]
        await send({"type": "http.response.start", "status": found.status, "headers": headers})
        content = b"" if scope.get("method") == "HEAD" else found.content
        await send({"type": "http.response.body", "body": content})


def _decode_wsgi_path(path: str) -> str:
    """Decode a WSGI path, whose bytes are in Latin-1 (PEP 3333)."""
    return path.encode("latin-1", "replace").decode("utf-8", "replace")
