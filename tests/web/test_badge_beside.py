"""The badge: several in one process, work that outlives its request, streams, and
unusual headers.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest
from web.test_badge import execute, get, listed

from queryprof.testing.meter import meter
from queryprof.web import badge_requests as requests
from queryprof.web.badge import Badge
from queryprof.web.injection import badge_element, changed_headers, is_page

pytestmark = pytest.mark.once

HTML = ("Content-Type", "text/html; charset=utf-8")


def test_two_badges_at_the_same_time() -> None:
    """Each request has its own queries, in either application."""
    inside, done = threading.Barrier(2), threading.Barrier(2)

    def application(times: int) -> Any:
        def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
            inside.wait()
            execute(times)
            done.wait()
            start_response("200 OK", [])
            return []

        return Badge(app, on=True)

    badges = {times: application(times) for times in (20, 21)}
    threads = [
        threading.Thread(target=get, args=(badge, f"/{times}")) for times, badge in badges.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for badge in badges.values():
        found = {one["name"]: (one["queries"], one["unknown"]) for one in listed(badge)}
        assert found == {"GET /20": (20, ""), "GET /21": (21, "")}


def test_work_that_outlives_its_request_is_of_no_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests, "MIN_NAMES", 1)
    monkeypatch.setattr(requests, "requests", requests.RecentRequests())
    begins, done = threading.Event(), threading.Event()

    def poll() -> None:
        begins.wait()
        execute(30)
        done.set()

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        if environ["PATH_INFO"] == "/first":
            threading.Thread(target=contextvars.copy_context().run, args=(poll,)).start()
        elif environ["PATH_INFO"] == "/later":
            execute(1)
            begins.set()
            done.wait()
        start_response("200 OK", [])
        return []

    badge = Badge(app, on=True)
    for path in ("/first", "/other", "/later", "/last"):
        get(badge, path)
    found = {one["name"]: one for one in listed(badge)}
    assert found["GET /later"]["queries"] == 1
    assert found["GET /later"]["repeats"] == []
    assert found["GET /later"]["unknown"] == requests.LATE
    assert {found[f"GET /{name}"]["unknown"] for name in ("first", "other", "last")} == {""}


@pytest.mark.parametrize("others", [3, 4])
def test_what_a_stream_executes_is_known_beside_so_many_others(
    others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "MAX_ENDED_DURING", 3)

    def app(environ: dict[str, Any], start_response: Any) -> Any:
        start_response("200 OK", [])
        if environ["PATH_INFO"] == "/stream":
            execute(5)
            return iter([b"event"] * 2)
        execute(2)
        return []

    badge = Badge(app, on=True)
    base = {"REQUEST_METHOD": "GET", "SERVER_NAME": "localhost", "REMOTE_ADDR": "127.0.0.1"}
    stream = badge({**base, "PATH_INFO": "/stream"}, lambda *_: None)
    next(stream)
    for _ in range(others):
        get(badge, "/short")
    assert len(meter._blocks) == (2 if others == 3 else 1)  # one is the badge's own
    stream.close()
    found = listed(badge)
    assert [one["queries"] for one in found] == [2] * others + [5]
    assert found[-1]["unknown"] == ("" if others == 3 else requests.LONG)


def test_headers_of_asgi_may_be_read_once() -> None:
    sent: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"application/json"), (b"set-cookie", b"a=b")]
        await send({"type": "http.response.start", "status": 200, "headers": iter(headers)})
        await send({"type": "http.response.body", "body": b"{}"})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 1),
    }
    asyncio.run(Badge(app, on=True)(scope, None, send))
    assert [*sent[0]["headers"]] == [
        (b"content-type", b"application/json"),
        (b"set-cookie", b"a=b"),
    ]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (("Content-Disposition", "inline; filename=attachment.html"), True),
        (("Content-Disposition", "ATTACHMENT; filename=a.html"), False),
        (("Cache-Control", "private"), True),
        (("Cache-Control", "private, No-Transform"), False),
        (("Content-Type", "text/html"), True),
        (("Content-Type", "text/html; charset=windows-1252"), True),
        (("Content-Type", 'text/html; Charset="utf-8"'), True),
        (("Content-Type", "text/html; charset=utf-16"), False),
        (("Content-Type", "text/html; charset=utf-32-le"), False),
        (("Content-Type", "text/html; charset=unheard-of"), False),
        (("Content-Type", "text/html; charset=\0"), False),
    ],
)
def test_which_pages_can_be_added_to(header: tuple[str, str], expected: bool) -> None:
    assert is_page(200, [HTML, header]) is expected


def test_what_was_true_of_the_page_alone_is_left_out() -> None:
    digests = [(name, "sha-256=x") for name in ("Digest", "Content-Digest", "Repr-Digest")]
    assert changed_headers([HTML, *digests], 9) == [HTML, ("Cache-Control", "no-store")]


def test_the_nonce_is_that_of_the_policy_that_holds() -> None:
    reports = ("Content-Security-Policy-Report-Only", "script-src 'nonce-reports'")
    holds = ("Content-Security-Policy", "img-src *, script-src 'nonce-holds'")
    assert b'nonce="holds"' in badge_element(1, "", "", [reports, holds])
    assert b'nonce="reports"' in badge_element(1, "", "", [reports])


def test_what_an_application_writes_into_its_scope_is_there_afterwards() -> None:
    """Routers write into it, and middleware around them reads it. The server's extensions are
    restored.
    """
    extensions = {"http.response.pathsend": {}, "tls": {}}
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        scope["route"] = "/items/{i}"
        seen.append(dict(scope["extensions"]))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(_message: dict[str, Any]) -> None:
        pass

    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 1),
        "extensions": extensions,
    }
    asyncio.run(Badge(app, on=True)(scope, None, send))
    assert (scope["route"], seen) == ("/items/{i}", [{"tls": {}}])
    assert scope["extensions"] is extensions


@pytest.mark.parametrize(
    "headers",
    [iter([HTML]), [("Content-Type", b"text/html")], [("Content-Type", None)], [("x",)], [3]],
)
def test_odd_headers_of_wsgi_are_the_servers_matter(headers: Any) -> None:
    expected = [HTML, ("Cache-Control", "no-store")] if not isinstance(headers, list) else headers
    sent: list[Any] = []

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        start_response("200 OK", headers)
        return []

    environ = {
        "REQUEST_METHOD": "GET",
        "SERVER_NAME": "localhost",
        "REMOTE_ADDR": "127.0.0.1",
        "PATH_INFO": "/",
        "HTTP_ACCEPT": "text/html",
    }
    Badge(app, on=True)(environ, lambda _status, given: sent.extend(given))
    assert sent == expected


@pytest.mark.parametrize(
    ("policy", "nonce"),
    [
        ("script-src\t'nonce-tab'", b'nonce="tab"'),
        ("script-src 'NONCE-up'", b'nonce="up"'),
        (";; img-src ; script-src-elem 'nonce-x'", b'nonce="x"'),
    ],
)
def test_policies_are_read_as_browsers_do(policy: str, nonce: bytes) -> None:
    assert nonce in badge_element(1, "", "", [("Content-Security-Policy", policy)])
    assert is_page(200, [HTML, ("Content-Security-Policy", policy)])


def test_a_policy_without_scripts_has_no_badge() -> None:
    forbids = "default-src 'self'; script-src 'none'"
    assert not is_page(200, [HTML, ("Content-Security-Policy", forbids)])
    assert is_page(200, [HTML, ("Content-Security-Policy-Report-Only", forbids)])
