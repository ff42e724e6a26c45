"""The name of a request's span: its method and the pattern of its route, if the framework has it;
else its path with numbers and ids folded.

The route is resolved before the framework handles the request, so that all queries of the request
are under one name. No framework is imported, only used when the program has imported it.
"""

from __future__ import annotations

import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping
    from typing import Any

    Scope = MutableMapping[str, Any]

LAYERS = 32
"""The most middlewares that are unwrapped to find the framework."""

UNROUTED = 200
"""Folded paths that get a name; the others are "(other paths)": clients can invent any number."""

_ID = re.compile(
    r"(?<=/)(?:\d+|[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}|[0-9a-f]{16,}"
    r"|(?=[^/]*\d)[A-Za-z0-9_-]{20,})(?=/|$)",
    re.IGNORECASE,
)

_ANCHOR = re.compile(r"(?<!\[)\^|\$$|\\Z$")
"""In the route of a regular expression: where it begins and ends, which is no name."""

_unrouted: set[str] = set()


def folded(path: str) -> str:
    """A path without what differs from request to request: numbers, UUIDs, long ids.

    >>> folded("/users/17/posts/9b2f1c9e-5d0a-4a52-8c3b-0a6e2f1d7c11")
    '/users/{id}/posts/{id}'
    """
    short = _ID.sub("{id}", path) or "/"
    if short not in _unrouted:
        if len(_unrouted) >= UNROUTED:
            return "(other paths)"
        _unrouted.add(short)
    return short


def wsgi_route(app: object, environ: Mapping[str, Any]) -> str:
    """The route of a WSGI request: Flask's or Django's pattern, or the folded path."""
    path = "".join(str(environ.get(name) or "") for name in ("SCRIPT_NAME", "PATH_INFO"))
    return _found(lambda: _flask_route(app, environ) or _django_route(app, environ)) or folded(path)


def asgi_route(app: object, scope: Scope) -> str:
    """The route of an ASGI request: Starlette's, FastAPI's or Django's pattern, or the folded
    path.
    """
    path = str(scope.get("path", ""))
    return _found(lambda: _starlette_route(app, scope) or _django_route(app, scope)) or folded(path)


def _found(route: Callable[[], str | None]) -> str | None:
    try:
        return route()
    except Exception:
        return None  # no such route, or an unknown version of the framework: the path is used


def _layers(app: object) -> list[Any]:
    """An application and those that it wraps, outermost first."""
    found: list[Any] = []
    inner: Any = app
    while inner is not None and len(found) < LAYERS and inner not in found:
        found.append(inner)
        inner = next(
            (
                value
                for name in ("__self__", "app", "application", "wsgi_app")
                if (value := getattr(inner, name, None)) is not None and callable(value)
            ),
            None,
        )
    return found


def _flask_route(app: object, environ: Mapping[str, Any]) -> str | None:
    for layer in _layers(app):
        if hasattr(layer, "url_map"):
            rule, _ = layer.url_map.bind_to_environ(environ).match(return_rule=True)
            return str(rule.rule)
    return None


def _django_route(app: object, request: Mapping[str, Any]) -> str | None:
    handlers = sys.modules.get("django.core.handlers.base")
    if handlers is None or not any(isinstance(a, handlers.BaseHandler) for a in _layers(app)):
        return None
    path = request.get("PATH_INFO") or request.get("path") or "/"
    route = str(sys.modules["django.urls"].resolve(path).route)
    return "/" + _ANCHOR.sub("", route)


def _starlette_route(app: object, scope: Scope) -> str | None:
    for layer in (scope.get("app"), *_layers(app)):
        routes = getattr(layer, "routes", None)
        if isinstance(routes, list):
            return _matching(routes, scope)
    return None


def _matching(routes: list[Any], scope: Scope) -> str | None:
    """The pattern of the first route that matches the whole path, mounted ones with their
    prefix.
    """
    for route in routes:
        match, child = route.matches(scope)
        if match.name != "FULL":
            continue
        included = getattr(route, "effective_candidates", None)
        if included is not None:  # FastAPI's, of a router that was included: whole paths
            return _matching(included(), scope)
        inner = getattr(route, "routes", None)
        if inner:
            below = _matching(inner, {**scope, **child})
            return None if below is None else route.path + below
        return str(route.path)
    return None
