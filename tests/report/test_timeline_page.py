"""The picture of the last seconds: every call has its place, and names are only text."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from analysis.test_recent import S, call, with_calls
from cli.test_last import busy_server

from queryprof.analysis.recent import Period, recent_activity
from queryprof.analysis.report import Report
from queryprof.model import Profile, Thread
from queryprof.report.html.timeline import BAR, LEFT, WIDTH, timeline_page

pytestmark = pytest.mark.once

PERIOD = Period(0, 10 * S)


def page_of(profile: Profile, period: Period = PERIOD) -> str:
    report = Report(profile)
    return timeline_page(report, recent_activity(report, period))


class Elements(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attributes}))

    def bars(self, kind: str = "") -> list[tuple[float, float]]:
        """Return the start and end of the bars of a kind, in pixels."""
        return [
            (float(one["x"]), float(one["x"]) + float(one["width"]))
            for tag, one in self.found
            if tag == "rect" and kind in [*one["class"].split(), ""]
        ]


def pixel(second: float) -> float:
    return LEFT + (WIDTH - LEFT) * second / 10


def test_calls_locks_and_stalls_have_their_places() -> None:
    elements = Elements(page_of(busy_server()))
    assert elements.bars("held") == [pytest.approx((pixel(2.5), pixel(9)), abs=0.2)]
    assert elements.bars("wait") == [
        pytest.approx((pixel(3), pixel(5.5)), abs=0.2),
        pytest.approx((pixel(6), pixel(8.9)), abs=0.2),
    ]
    assert elements.bars("stall") == [pytest.approx((pixel(3), pixel(5)), abs=0.2)]
    assert elements.bars("failed") == [pytest.approx((pixel(3), pixel(5.5)), abs=0.2)]
    assert elements.bars("open") == [pytest.approx((pixel(9), pixel(10)), abs=0.2)]
    assert all(LEFT <= start and end <= WIDTH + 1 for start, end in elements.bars())
    heights = Counter(one["height"] for tag, one in elements.found if tag == "rect")
    assert list(heights) == [str(BAR)]


def test_calls_that_are_too_short_to_be_seen_share_a_bar() -> None:
    """A page of 60,000 calls stays small, and none of their time is lost."""
    calls = tuple(call(n * S // 10_000, S // 50_000) for n in range(60_000))
    page = page_of(with_calls(*calls))
    ((start, end),) = Elements(page).bars("c0")
    assert (start, end) == pytest.approx((pixel(0), pixel(6)), abs=0.5)
    assert "60,000 calls, 1.20 s in total" in page
    assert len(page) < 20_000


def test_calls_that_are_apart_have_bars_of_their_own() -> None:
    calls = tuple(call(n * S, S // 1000) for n in range(10))
    assert len(Elements(page_of(with_calls(*calls))).bars("c0")) == 10


def test_names_of_strangers_are_text() -> None:
    hostile = "</title></svg><script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m"
    one = call(S, S, hostile)
    odd = replace(one, thread=Thread(1, hostile), path=(replace(one.path[0], file=hostile),))
    page = page_of(with_calls(odd))
    tags = {tag for tag, _ in Elements(page).found}
    assert not tags & {"script", "img"}
    assert "\x1b" not in page
