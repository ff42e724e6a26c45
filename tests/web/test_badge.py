"""The badge: which responses get it, and its text about requests. If it is off, nothing changes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.request import Request as Get
from urllib.request import urlopen

import pytest
from web.conftest import Serving

import queryprof
from queryprof.testing.meter import meter
from queryprof.web.badge import Badge
from queryprof.web.injection import badge_element, changed_headers, is_page, wants_page

pytestmark = pytest.mark.once

BROWSER = {"HTTP_ACCEPT": "text/html", "HTTP_SEC_FETCH_DEST": "document"}
PAGE = b"<!doctype html><p>page</p>"


def execute(times: int = 1) -> None:
    import sqlite3

    connection = sqlite3.connect(":memory:")
    for number in range(times):
        connection.execute("SELECT ?", (number,)).fetchone()
    connection.close()


def wsgi(
    body: Any = None, kind: str = "text/html", status: str = "200 OK", **more: str
) -> Callable[..., Any]:
    def app(environ: dict[str, Any], start_response: Any) -> Any:
        execute(3)
        content = [PAGE] if body is None else body
        length = {"Content-Length": str(len(PAGE))} if isinstance(content, list) else {}
        headers = {"Content-Type": kind, **length, **more}
        start_response(status, list(headers.items()))
        return content

    return app


def get(
    app: Any, path: str = "/", query: str = "", **environ: Any
) -> tuple[str, dict[str, str], bytes]:
    """Return the response of a WSGI application to a browser on this machine."""
    found: list[Any] = []
    base = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "SERVER_NAME": "localhost",
        "REMOTE_ADDR": "127.0.0.1",
        **BROWSER,
    }
    body = app({**base, **environ}, lambda *arguments: found.append(arguments))
    content = b"".join(body)
    if hasattr(body, "close"):
        body.close()
    return found[-1][0], dict(found[-1][1]), content


def listed(app: Any) -> list[dict[str, Any]]:
    status, headers, content = get(app, "/__queryprof__/requests", "first=1&since=0")
    assert (status, headers["Content-Type"]) == ("200 OK", "application/json")
    return list(json.loads(content))


def test_off_the_application_is_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    app = wsgi()
    assert Badge(app) is app
    assert Badge(app, on=False) is app
    monkeypatch.setenv("QUERYPROF_BADGE", "0")
    assert Badge(app) is app
    monkeypatch.setenv("QUERYPROF_BADGE", "1")
    assert Badge(app) is not app
    assert Badge(app, on=False) is app


def test_off_nothing_is_imported() -> None:
    code = (
        "import sys, queryprof; app = lambda *_: []; assert queryprof.Badge(app) is app\n"
        "names = {n for n in sys.modules if n.startswith('queryprof.')}\n"
        "assert not names & {'queryprof.web.badge_requests', 'queryprof.web.badge_pages', 'queryprof.recorder.session'}, names"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_no_application() -> None:
    with pytest.raises(TypeError, match="is not callable"):
        Badge(3, on=True)


def test_a_page_gets_the_script_and_its_queries_are_listed() -> None:
    app = Badge(wsgi(ETag="x"), on=True)
    _, headers, content = get(app)
    script = content.removeprefix(PAGE)
    assert script == b'\n<script src="/__queryprof__/badge.js" data-request="1" async></script>'
    named = get(app, HTTP_HOST="localhost:5000")[2]
    assert b'src="//localhost:5000/__queryprof__/badge.js"' in named  # whatever the page's base is
    assert headers["Content-Length"] == str(len(content))
    assert headers["Cache-Control"] == "no-store"
    assert "ETag" not in headers
    request = listed(app)[0]
    assert (request["number"], request["name"], request["status"]) == (1, "GET /", 200)
    assert (request["queries"], request["repeats"], request["unknown"]) == (3, [], "")
    assert request["worst"]["place"].endswith("execute")
    assert request["total_ms"] >= request["database_ms"]


@pytest.mark.parametrize(
    ("app", "environ"),
    [
        (wsgi(kind="application/json"), {}),
        (wsgi(**{"Content-Encoding": "gzip"}), {}),
        (wsgi(**{"Content-Disposition": "attachment"}), {}),
        (wsgi(status="304 Not Modified"), {}),
        (wsgi(), {"REQUEST_METHOD": "HEAD"}),
        (wsgi(), {"REQUEST_METHOD": "POST", "HTTP_SEC_FETCH_DEST": ""}),
        (wsgi(), {"HTTP_HX_REQUEST": "true"}),
        (wsgi(), {"HTTP_X_REQUESTED_WITH": "XMLHttpRequest"}),
        (wsgi(), {"HTTP_SEC_FETCH_DEST": "empty"}),
        (wsgi(), {"HTTP_SEC_FETCH_DEST": "", "HTTP_ACCEPT": "*/*"}),
    ],
)
def test_others_stay_as_they_are_and_are_listed(app: Any, environ: dict[str, str]) -> None:
    badge = Badge(app, on=True)
    assert get(badge, **environ) == get(app, **environ)
    (request,) = listed(badge)
    assert request["queries"] == 3


@pytest.mark.parametrize(
    "environ",
    [
        {"REMOTE_ADDR": "10.0.0.9"},
        {"REMOTE_ADDR": ""},
        {"HTTP_HOST": "evil.example"},
        {"HTTP_HOST": "evil.example:8000"},
        {"HTTP_HOST": "127.0.0.1.evil.example"},
        {"HTTP_HOST": "["},
    ],
)
def test_strangers_get_nothing(environ: dict[str, str]) -> None:
    app = wsgi()
    badge = Badge(app, on=True)
    assert get(badge, **environ) == get(app, **environ)
    assert get(badge, "/__queryprof__/requests", **environ)[2] == PAGE  # the application's own
    assert listed(badge) == []


@pytest.mark.parametrize(
    "host", ["localhost:8000", "shop.localhost", "127.0.0.1", "[::1]:80", "dev.test"]
)
def test_names_of_this_machine(host: str) -> None:
    badge = Badge(wsgi(), on=True, hosts=["dev.test"])
    assert b"badge.js" in get(badge, HTTP_HOST=host)[2]


def test_other_developers_can_be_allowed() -> None:
    badge = Badge(wsgi(), on=True, clients=["10.0.0.9"])
    assert b"badge.js" in get(badge, REMOTE_ADDR="10.0.0.9")[2]
    assert get(badge)[2] == PAGE


def test_a_response_that_is_made_while_it_is_sent() -> None:
    closed = []

    class Body:
        def __iter__(self) -> Iterator[bytes]:
            yield PAGE[:5]
            execute(2)
            yield PAGE[5:]

        def close(self) -> None:
            closed.append(True)

    badge = Badge(wsgi(Body()), on=True)
    _, headers, content = get(badge)
    assert content.startswith(PAGE)
    assert b"badge.js" in content
    assert "Content-Length" not in headers
    assert closed == [True]
    assert listed(badge)[0]["queries"] == 5


def test_an_error_is_the_applications() -> None:
    def app(environ: object, start_response: object) -> list[bytes]:
        execute()
        raise ValueError("its own")

    badge = Badge(app, on=True)
    with pytest.raises(ValueError, match="its own"):
        get(badge)
    (request,) = listed(badge)
    assert (request["queries"], request["status"]) == (1, None)


def test_queries_in_a_loop_are_reported() -> None:
    def app(environ: object, start_response: Any) -> list[bytes]:
        execute(11)
        start_response("200 OK", [])
        return []

    badge = Badge(app, on=True)
    get(badge)
    (repeat,) = listed(badge)[0]["repeats"]
    assert (repeat["executions"], repeat["statement"]) == (11, "SELECT ?")
    status, headers, card = get(badge, "/__queryprof__/request/1")
    assert status == "200 OK"
    assert b"SELECT ?" in card
    assert b"A query in a loop: 11 times at test_badge.py:" in card
    assert b"no span" not in card
    assert b"<script" not in card
    assert "default-src 'none'" in headers["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["request/9", "request/x", "request/" + "9" * 99, "", "../x"])
def test_what_is_not_there(path: str) -> None:
    badge = Badge(wsgi(), on=True)
    assert get(badge, f"/__queryprof__/{path}")[0] == "404 Not Found"


def test_hostile_names_are_text() -> None:
    hostile = "/<script>alert(1)</script>\x1b[31m"

    def app(environ: object, start_response: Any) -> list[bytes]:
        import sqlite3

        connection = sqlite3.connect(":memory:")
        connection.execute('SELECT 1 AS "<img src=x onerror=alert(1)>"').fetchone()
        connection.close()
        start_response("200 OK", [("Content-Type", "text/html")])
        return [PAGE]

    badge = Badge(app, on=True)
    _, _, page = get(badge, hostile)
    assert page.removeprefix(PAGE).count(b"<") == 2
    (request,) = listed(badge)
    assert "\x1b" not in request["name"]
    _, _, content = get(badge, "/__queryprof__/requests")
    assert b"<" not in content
    _, _, card = get(badge, "/__queryprof__/request/1")
    assert b"<script>" not in card
    assert b"<img" not in card
    assert b"\x1b" not in card


def test_requests_at_the_same_time_are_kept_apart() -> None:
    inside, go = threading.Barrier(2), threading.Barrier(2)

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        inside.wait()
        with queryprof.span("own"):
            execute(int(environ["PATH_INFO"][1:]))
        go.wait()
        start_response("200 OK", [])
        return []

    badge = Badge(app, on=True)
    threads = [threading.Thread(target=get, args=(badge, f"/{n}")) for n in (2, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = {one["name"]: (one["queries"], one["unknown"]) for one in listed(badge)}
    assert found == {"GET /2": (2, ""), "GET /5": (5, "")}


def test_in_a_recording_it_leaves_the_recording() -> None:
    from conftest import by_operation
    from queryprof.collect.reader import read_profile

    queryprof.install("x.qprof")
    badge = Badge(wsgi(), on=True)
    get(badge, "/7")
    get(badge, "/8")
    for block in tuple(meter._blocks):
        meter.close(block)
    queryprof.uninstall()
    profile = read_profile("x.qprof")
    assert by_operation(profile)["SELECT ?", "execute"] == 6
    assert {span.name for span in profile.spans} == {"GET /{id}"}


def test_an_inner_middleware_makes_no_second_span() -> None:
    badge = Badge(queryprof.WsgiMiddleware(wsgi()), on=True)
    get(badge)
    assert listed(badge)[0]["queries"] == 3


def test_the_nonce_is_the_pages() -> None:
    policy = [("Content-Security-Policy", "script-src 'nonce-aB3+/_-=' 'strict-dynamic'")]
    assert b' nonce="aB3+/_-="' in badge_element(1, "", "", policy)
    assert b"nonce" not in badge_element(
        1, "", "", [("Content-Security-Policy", "script-src 'self'")]
    )
    assert b'nonce="x"' not in badge_element(
        1, "", "", [("Content-Security-Policy", "script-src 'nonce-\"x'")]
    )


def test_the_nonce_is_that_of_scripts() -> None:
    csp = "img-src 'nonce-zzz'; script-src 'nonce-abc'"
    assert b' nonce="abc"' in badge_element(1, "", "", [("Content-Security-Policy", csp)])
    assert b' nonce="x"' in badge_element(
        1, "", "", [("Content-Security-Policy", "default-src 'nonce-x'")]
    )
    report = [("Content-Security-Policy-Report-Only", "script-src 'nonce-r'")]
    assert b' nonce="r"' in badge_element(1, "", "", report)


def test_the_place_is_this_server() -> None:
    assert b'src="//localhost/evil.example/__queryprof__/' in badge_element(
        1, "localhost", "//evil.example", []
    )
    assert b'src="/__queryprof__/badge.js"' in badge_element(1, '"><x', "", [])


def test_thresholds_of_a_page() -> None:
    html = [("Content-Type", "Text/HTML; charset=utf-8")]
    assert [code for code in (199, 200, 204, 304, 404, 500, 599, 600) if is_page(code, html)] == [
        200,
        404,
        500,
        599,
    ]
    assert not wants_page("GET", {})
    assert changed_headers([("content-length", "odd")], 5)[0] == ("content-length", "odd")


@pytest.mark.parametrize("name", ["flask", "fastapi", "django"])
@pytest.mark.repeats
def test_off_a_server_sends_the_same(serving: Serving, name: str) -> None:
    """Without the switch, the bytes and headers equal those of an application without the
    middleware.
    """
    with serving(name, on="0") as address:
        headers = {"Accept": "text/html", "Sec-Fetch-Dest": "document"}
        with urlopen(Get(f"{address}/", headers=headers)) as response:
            content = response.read()
        assert b"__queryprof__" not in content
        assert response.headers.get("Cache-Control") is None
        assert response.headers.get("Content-Length", str(len(content))) == str(len(content))


def test_a_card_runs_no_query_as_the_program(tmp_path: Any) -> None:
    """Reading the schema for the findings does not count as a query of the request."""
    import sqlite3

    path = str(tmp_path / "shop.db")
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE t (a, b)")
        made.executemany("INSERT INTO t VALUES (?, ?)", [(n, n) for n in range(50_000)])
    made.close()

    def app(environ: object, start_response: Any) -> list[bytes]:
        connection = sqlite3.connect(path)
        for number in range(20):
            connection.execute("SELECT a FROM t WHERE b = ?", (-number,)).fetchall()
        connection.close()
        start_response("200 OK", [])
        return []

    badge = Badge(app, on=True)
    get(badge)
    card = get(badge, "/__queryprof__/request/1")[2]
    assert b"CREATE INDEX" in card
    get(badge)
    assert [one["queries"] for one in listed(badge)] == [20, 20]
