"""The badge: concurrent requests, long requests, and requests in other recordings."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from web.test_badge import PAGE, execute, get, listed, wsgi

import queryprof
from queryprof.testing.meter import meter
from queryprof.web.badge import Badge

pytestmark = pytest.mark.once


def test_a_request_that_ends_later_is_listed_later() -> None:
    """The slow request is the interesting one."""
    inside, go = threading.Event(), threading.Event()

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        if environ["PATH_INFO"] == "/slow":
            inside.set()
            go.wait()
        execute()
        start_response("200 OK", [])
        return []

    badge = Badge(app, on=True)
    slow = threading.Thread(target=get, args=(badge, "/slow"))
    slow.start()
    inside.wait()
    get(badge, "/fast")
    (first,) = listed(badge)
    assert first["name"] == "GET /fast"
    go.set()
    slow.join()
    _, _, content = get(badge, "/__queryprof__/requests", f"first=1&since={first['ended']}")
    assert [one["name"] for one in json.loads(content)] == ["GET /slow"]


def test_counts_stay_right_while_a_response_is_open_for_long() -> None:
    def events() -> Iterator[bytes]:
        while True:
            yield b"event"

    open_one: list[Any] = []

    def app(environ: dict[str, Any], start_response: Any) -> Any:
        start_response("200 OK", [])
        if environ["PATH_INFO"] == "/events":
            return events()
        execute(2)
        return []

    badge = Badge(app, on=True)
    base = {"REQUEST_METHOD": "GET", "SERVER_NAME": "localhost", "REMOTE_ADDR": "127.0.0.1"}
    stream = badge({**base, "PATH_INFO": "/events"}, lambda *_: None)
    next(stream)
    open_one.append(stream)
    for _ in range(1300):
        get(badge, "/short")
    assert {one["queries"] for one in listed(badge)} == {2}
    stream.close()


def test_in_a_recording_requests_of_one_route_are_not_mixed() -> None:
    inside, go = threading.Barrier(2), threading.Barrier(2)

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        inside.wait()
        execute(int(environ["PATH_INFO"].rpartition("/")[2]))
        go.wait()
        start_response("200 OK", [])
        return []

    queryprof.install("x.qprof")
    badge = Badge(app, on=True)
    threads = [threading.Thread(target=get, args=(badge, f"/item/{n}")) for n in (12, 25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = {one["name"]: one for one in listed(badge)}
    assert {name: one["queries"] for name, one in found.items()} == {
        "GET /item/12": 12,
        "GET /item/25": 25,
    }
    for one in found.values():
        assert one["repeats"] == []
        assert "this request's lines are unknown" in one["unknown"]
    for block in tuple(meter._blocks):
        meter.close(block)
    queryprof.uninstall()


def test_spans_of_the_program_are_its_own_outside_of_requests() -> None:
    from queryprof.core.span import nesting

    badge = Badge(wsgi(), on=True)
    get(badge)
    assert not nesting.is_off


def test_a_list_with_a_close_is_closed() -> None:
    closed = []

    class Body(list[bytes]):
        def close(self) -> None:
            closed.append(True)

    _, _, content = get(Badge(wsgi(Body([PAGE])), on=True))
    assert b"badge.js" in content
    assert closed == [True]


def test_a_form_that_is_shown_again_is_a_page() -> None:
    assert b"badge.js" in get(Badge(wsgi(), on=True), REQUEST_METHOD="POST")[2]


@pytest.mark.parametrize("wrong", [{"clients": "127.0.0.1"}, {"hosts": "localhost"}])
def test_lists_are_lists(wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="are lists"):
        Badge(wsgi(), on=True, **wrong)


@pytest.mark.parametrize("value", ["1", "true", "YES", "on"])
def test_words_that_switch_it_on(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("QUERYPROF_BADGE", value)
    app = wsgi()
    assert Badge(app) is not app


def test_a_span_around_a_request_goes_on() -> None:
    """Statements after the request belong to the outer span."""
    from queryprof.collect.reader import read_profile

    queryprof.install("x.qprof")
    badge = Badge(wsgi(), on=True)
    with queryprof.span("outer"):
        get(badge, "/7")
        execute(5)
    for block in tuple(meter._blocks):
        meter.close(block)
    queryprof.uninstall()
    aggregates = read_profile("x.qprof").aggregates
    found = {a.span: a.count for a in aggregates if a.operation == "execute"}
    assert found == {"GET /{id}": 3, "outer": 5}


def test_a_child_has_no_requests_of_its_parent() -> None:
    """This holds even if another thread had the lock at the fork."""
    import os

    badge = Badge(wsgi(), on=True)
    get(badge)
    with badge._requests._lock:
        child = os.fork()
        if not child:
            try:
                assert listed(badge) == []
                get(badge)
                os._exit(20 + len(listed(badge)))
            finally:
                os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 21
    assert len(listed(badge)) == 1
