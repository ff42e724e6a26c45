"""Name a request's span by its method and its route pattern, if the framework has one.

Otherwise the name is the path, with numbers and ids folded. The route is resolved before the
framework handles the request, so all its queries have the same span. Frameworks are used only if
the program has imported them.
"""

from __future__ import annotations

import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping
    from typing import Any

    Scope = MutableMapping[str, Any]

MAX_LAYERS = 32
"""Maximum number of middlewares that are unwrapped to find the framework."""

MAX_UNROUTED = 200
"""Maximum number of folded paths that have their own span name. Further paths are "(other paths)",
because clients can invent any number of paths.
"""

_ID = re.compile(
    r"(?<=/)(?:\d+|[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}|[0-9a-f]{16,}"
    r"|(?=[^/]*\d)[A-Za-z0-9_-]{20,})(?=/|$)",
    re.IGNORECASE,
)

_ANCHOR = re.compile(r"(?<!\[)\^|\$$|\\Z$")
"""Anchors of a route's regular expression, which are not part of its name."""

_unrouted: set[str] = set()


def without_variable_parts(path: str) -> str:
    """Replace the variable parts of a path (numbers, UUIDs, long ids) by {id}.

    >>> without_variable_parts("/users/17/posts/9b2f1c9e-5d0a-4a52-8c3b-0a6e2f1d7c11")
    '/users/{id}/posts/{id}'
    """
    short = _ID.sub("{id}", path) or "/"
    if short not in _unrouted:
        if len(_unrouted) >= MAX_UNROUTED:
            return "(other paths)"
        _unrouted.add(short)
    return short


def wsgi_route(app: object, environ: Mapping[str, Any]) -> str:
    """Return the route of a WSGI request: Flask's or Django's pattern, or the folded path."""
    path = "".join(str(environ.get(name) or "") for name in ("SCRIPT_NAME", "PATH_INFO"))
    return _call_route_function(
        lambda: _flask_route(app, environ) or _django_route(app, environ)
    ) or without_variable_parts(path)


def asgi_route(app: object, scope: Scope) -> str:
    """Return the route of an ASGI request: the framework's pattern, or the folded path.

    Starlette, FastAPI and Django have patterns.
    """
    path = str(scope.get("path", ""))
    return _call_route_function(
        lambda: _starlette_route(app, scope) or _django_route(app, scope)
    ) or without_variable_parts(path)


def _call_route_function(route: Callable[[], str | None]) -> str | None:
    try:
        return route()
    except Exception:
        return None  # no such route, or an unknown version of the framework: use the path


def _wrapped_applications(app: object) -> list[Any]:
    """Return an application and the applications that it wraps, outermost first."""
    found: list[Any] = []
    inner: Any = app
    while inner is not None and len(found) < MAX_LAYERS and inner not in found:
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
    for layer in _wrapped_applications(app):
        if hasattr(layer, "url_map"):
            rule, _ = layer.url_map.bind_to_environ(environ).match(return_rule=True)
            return str(rule.rule)
    return None


def _django_route(app: object, request: Mapping[str, Any]) -> str | None:
    handlers = sys.modules.get("django.core.handlers.base")
    if handlers is None or not any(
        isinstance(a, handlers.BaseHandler) for a in _wrapped_applications(app)
    ):
        return None
    path = request.get("PATH_INFO") or request.get("path") or "/"
    route = str(sys.modules["django.urls"].resolve(path).route)
    return "/" + _ANCHOR.sub("", route)


def _starlette_route(app: object, scope: Scope) -> str | None:
    for layer in (scope.get("app"), *_wrapped_applications(app)):
        routes = getattr(layer, "routes", None)
        if isinstance(routes, list):
            return _matching_pattern(routes, scope)
    return None


def _matching_pattern(routes: list[Any], scope: Scope) -> str | None:
    """Return the pattern of the first route that matches the whole path.

    A mounted route's pattern includes its prefix.
    """
    for route in routes:
        match, child = route.matches(scope)
        if match.name != "FULL":
            continue
        included = getattr(route, "effective_candidates", None)
        if included is not None:  # the full paths of an included FastAPI router
            return _matching_pattern(included(), scope)
        inner = getattr(route, "routes", None)
        if inner:
            below = _matching_pattern(inner, {**scope, **child})
            return None if below is None else route.path + below
        return str(route.path)
    return None
