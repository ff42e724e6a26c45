"""The script's element in a page: which responses get it, and how it looks there."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PREFIX = "/__queryprof__/"
"""What the paths of the badge's own answers begin with."""

NONCE = re.compile(r"'nonce-([A-Za-z0-9+/_=-]+)'", re.IGNORECASE)
"""Of a Content-Security-Policy (https://www.w3.org/TR/CSP3/#grammardef-nonce-source)."""

POLICIES = ("content-security-policy", "content-security-policy-report-only")
"""That which holds comes before that which reports alone."""

CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s;\"']+)", re.IGNORECASE)

HOST = re.compile(r"[A-Za-z0-9.:\[\]-]+")
"""A name or address, with a port."""

CHANGED = frozenset(
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
"""Headers of what a page was, which are none of what it is with the element."""

Headers = list[tuple[str, str]]


def wants_page(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a request is for a whole page, and not for a part of one that a script puts there.

    Args:
        headers: by their names in lower case.
    """
    if "hx-request" in headers or "x-requested-with" in headers:
        return False
    wanted = headers.get("sec-fetch-dest")
    if wanted:
        return wanted == "document" and method in ("GET", "POST")
    return method == "GET" and "text/html" in headers.get("accept", "")


def is_page(status: int, headers: Headers) -> bool:
    """Whether a response is a page to whose end an element can be added, and whose policy lets
    scripts run. Headers that are no texts are the server's matter.
    """
    if not 200 <= status < 600 or status in (204, 205, 206, 304) or not _are_texts(headers):
        return False
    if any("'none'" in _of_scripts(policy) for policy in _policies(headers, POLICIES[:1])):
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
    """Whether the charset of a Content-Type has the bytes of ASCII, as all but UTF-16 and UTF-32;
    none is named: it has.
    """
    charset = CHARSET.search(parameters)
    try:
        return charset is None or "<".encode(charset[1]) == b"<"
    except (LookupError, ValueError):
        return False


def element(number: int, host: str, root: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """The element for the end of a page.

    Args:
        number: of the request.
        host: the server's name, as the request has it: a page may have another base.
        root: the path at which the application is mounted.
        headers: of the response: its policy may have a nonce.
    """
    nonces = list(filter(None, map(_nonce_of, _policies(headers, POLICIES))))
    nonce = f' nonce="{nonces[0]}"' if nonces else ""
    place = f"//{host}" if HOST.fullmatch(host) else ""
    source = f"{place}{_path(root)}{PREFIX}badge.js"
    return f'\n<script{nonce} src="{source}" data-request="{number}" async></script>'.encode()


def _are_texts(headers: Headers) -> bool:
    try:
        return all(isinstance(name, str) and isinstance(value, str) for name, value in headers)
    except (TypeError, ValueError):
        return False


def _policies(headers: Iterable[tuple[str, str]], kinds: Iterable[str]) -> list[str]:
    """The policies of a response, those of the first kind first."""
    given = [(name.lower(), value) for name, value in headers]
    return [
        one
        for kind in kinds
        for name, value in given
        if name == kind
        for one in value.split(",")  # several in one header
    ]


def _nonce_of(policy: str) -> str:
    """The nonce of a policy's scripts; "": it has none."""
    found = NONCE.search(_of_scripts(policy))
    return found[1] if found else ""


def _of_scripts(policy: str) -> str:
    """What a policy says of scripts; "": nothing."""
    directives: dict[str, str] = {}
    for one in policy.split(";"):
        name, *values = one.split(None, 1) or [""]
        directives.setdefault(name.lower(), "".join(values))
    names = ("script-src-elem", "script-src", "default-src")
    return next((directives[name] for name in names if name in directives), "")


def changed_headers(headers: Headers, added: int) -> Headers:
    """The headers of a response with so many bytes more, which is not kept anywhere."""
    kept = [(name, value) for name, value in headers if name.lower() not in CHANGED]
    return [
        (name, str(int(value) + added))
        if name.lower() == "content-length" and value.strip().isdecimal()
        else (name, value)
        for name, value in kept
    ] + [("Cache-Control", "no-store")]


def _path(root: str) -> str:
    from urllib.parse import quote

    path = quote(root.strip("/"), safe="/")
    return f"/{path}" if path else ""
