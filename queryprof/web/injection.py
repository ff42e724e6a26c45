"""The badge's script element in a page: the responses that get the element, and its content."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PREFIX = "/__queryprof__/"
"""Prefix of the paths of the badge's own answers."""

NONCE = re.compile(r"'nonce-([A-Za-z0-9+/_=-]+)'", re.IGNORECASE)
"""The nonce in a Content-Security-Policy (https://www.w3.org/TR/CSP3/#grammardef-nonce-source)."""

POLICIES = ("content-security-policy", "content-security-policy-report-only")
"""The enforced policy comes before the report-only policy."""

CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s;\"']+)", re.IGNORECASE)

HOST = re.compile(r"[A-Za-z0-9.:\[\]-]+")
"""A name or address, with an optional port."""

OUTDATED_HEADERS = frozenset(
    {
        "cache-control",
        "content-digest",
        "content-md5",
        "digest",
        "etag",
        "expires",
        "last-modified",
        "repr-digest",
    }
)
"""Headers that describe the original page, and are wrong for the page with the element."""

Headers = list[tuple[str, str]]


def wants_page(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request is for a whole page, not for a part that a script inserts.

    Args:
        headers: by name in lower case.
    """
    if "hx-request" in headers or "x-requested-with" in headers:
        return False
    wanted = headers.get("sec-fetch-dest")
    if wanted:
        return wanted == "document" and method in ("GET", "POST")
    return method == "GET" and "text/html" in headers.get("accept", "")


def is_page(status: int, headers: Headers) -> bool:
    """Return whether a response is a page that can get an element and whose policy allows scripts.

    Returns False for invalid headers, which are left to the server.
    """
    if not 200 <= status < 600 or status in (204, 205, 206, 304) or not _are_text_headers(headers):
        return False
    if any(
        "'none'" in _script_sources(policy) for policy in _security_policies(headers, POLICIES[:1])
    ):
        return False
    found = {name.lower(): value for name, value in headers}
    kind, _, parameters = found.get("content-type", "").partition(";")
    is_whole = (
        found.get("content-encoding", "identity") == "identity"
        and "no-transform" not in found.get("cache-control", "").lower()
        and not found.get("content-disposition", "").strip().lower().startswith("attachment")
        and "trailer" not in found
    )
    return kind.strip().lower() == "text/html" and is_whole and _has_ascii(parameters)


def _has_ascii(parameters: str) -> bool:
    """Return whether a charset encodes ASCII as ASCII, like all except UTF-16 and UTF-32.

    Returns True without a charset.
    """
    charset = CHARSET.search(parameters)
    try:
        return charset is None or "<".encode(charset[1]) == b"<"
    except (LookupError, ValueError):
        return False


def badge_element(number: int, host: str, root: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """Return the element for the end of a page.

    Args:
        number: number of the request.
        host: the server's name from the request, because the page may have another base.
        root: the path at which the application is mounted.
        headers: headers of the response, whose policy may have a nonce.
    """
    nonces = list(filter(None, map(_script_nonce, _security_policies(headers, POLICIES))))
    nonce = f' nonce="{nonces[0]}"' if nonces else ""
    place = f"//{host}" if HOST.fullmatch(host) else ""
    source = f"{place}{_quoted_path(root)}{PREFIX}badge.js"
    return f'\n<script{nonce} src="{source}" data-request="{number}" async></script>'.encode()


def _are_text_headers(headers: Headers) -> bool:
    try:
        return all(isinstance(name, str) and isinstance(value, str) for name, value in headers)
    except (TypeError, ValueError):
        return False


def _security_policies(headers: Iterable[tuple[str, str]], kinds: Iterable[str]) -> list[str]:
    """Return the policies of a response, ordered by kind."""
    given = [(name.lower(), value) for name, value in headers]
    return [
        one
        for kind in kinds
        for name, value in given
        if name == kind
        for one in value.split(",")  # one header may contain several
    ]


def _script_nonce(policy: str) -> str:
    """Return the nonce for scripts in a policy, or ""."""
    found = NONCE.search(_script_sources(policy))
    return found[1] if found else ""


def _script_sources(policy: str) -> str:
    """Return a policy's sources for scripts, or ""."""
    directives: dict[str, str] = {}
    for one in policy.split(";"):
        name, *values = one.split(None, 1) or [""]
        directives.setdefault(name.lower(), "".join(values))
    names = ("script-src-elem", "script-src", "default-src")
    return next((directives[name] for name in names if name in directives), "")


def changed_headers(headers: Headers, added: int) -> Headers:
    """Return the headers of a response that has `added` more bytes and must not be cached."""
    kept = [(name, value) for name, value in headers if name.lower() not in OUTDATED_HEADERS]
    return [
        (name, str(int(value) + added))
        if name.lower() == "content-length" and value.strip().isdecimal()
        else (name, value)
        for name, value in kept
    ] + [("Cache-Control", "no-store")]


def _quoted_path(root: str) -> str:
    from urllib.parse import quote

    path = quote(root.strip("/"), safe="/")
    return f"/{path}" if path else ""
