"""The badge in a real browser, in Flask, FastAPI and Django."""

from __future__ import annotations

from typing import Any

import pytest
from report.browser import BROWSER, printed_by
from web.conftest import Serving

axe = pytest.importorskip("axe_playwright_python.sync_playwright")
pytestmark = BROWSER

NAMES = ["flask", "fastapi", "django"]
WAITS = "() => document.querySelector('body > div')?.dataset.requests >= %d"


@pytest.fixture
def page(chromium: Any) -> Any:
    context = chromium.new_context(color_scheme="light")
    page = context.new_page()
    page.console = printed_by(page)
    yield page
    context.close()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.repeats
def test_it_lists_the_requests_of_the_page(serving: Serving, page: Any, name: str) -> None:
    with serving(name) as address:
        page.goto(f"{address}/")
        page.wait_for_function(WAITS % 1)
        button = page.get_by_role("button")
        assert "20 queries" in button.inner_text()
        assert "1 query in a loop" in button.inner_text()
        page.evaluate("fetch('/data').then(one => one.json())")
        page.wait_for_function(WAITS % 2)
        page.evaluate(
            "() => { const x = new XMLHttpRequest(); x.open('GET', '/part');"
            " x.onload = () => document.querySelector('#said').innerHTML = x.responseText; x.send(); }"
        )
        page.wait_for_function(WAITS % 3)
        assert page.locator("#said b").inner_text() == "40"
        assert page.locator("#said script").count() == 0
        button.click()
        items = page.locator("li").all_inner_texts()
        assert len(items) == 3
        assert items[0].startswith("GET / 200")
        assert "a query in a loop: 20 times at web.py" in items[0]
        assert items[1].startswith("GET /data 200")
        assert "1 query" in items[1]
        assert not page.console
        with page.context.expect_page() as opened:
            page.locator("li a").first.click()
        card = opened.value
        card.wait_for_load_state()
        text = card.inner_text("main")
        assert "SELECT total FROM orders WHERE id = ?" in text
        assert "GET /" in text
        assert axe.Axe().run(card).response["violations"] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.repeats
def test_it_can_be_used_by_everybody(serving: Serving, chromium: Any, scheme: str) -> None:
    """Axe reports no violations, and the badge works with the keyboard alone."""
    context = chromium.new_context(color_scheme=scheme, viewport={"width": 400, "height": 700})
    page = context.new_page()
    with serving("flask") as address:
        page.goto(f"{address}/")
        page.wait_for_function(WAITS % 1)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("section ol:not([hidden])")
        assert page.get_by_role("button").get_attribute("aria-expanded") == "true"
        assert axe.Axe().run(page).response["violations"] == []
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 400
        page.keyboard.press("Enter")
        page.wait_for_selector("section ol[hidden]", state="attached")
    context.close()


@pytest.mark.parametrize(
    ("policy", "shows"),
    [
        ("default-src 'self'", True),
        ("script-src 'nonce-abc'; style-src 'nonce-abc'", True),
        ("default-src 'none'", False),
    ],
)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.repeats
def test_policies_are_kept(
    serving: Serving, page: Any, name: str, policy: str, shows: bool
) -> None:
    """If the page's policy forbids the script, there is no badge and the page is unchanged."""
    from urllib.parse import quote

    with serving(name) as address:
        page.goto(f"{address}/?policy={quote(policy)}")
        if shows:
            page.wait_for_function(WAITS % 1)
            assert page.console == []
        else:
            page.wait_for_load_state("networkidle")
            assert page.locator("body > div").count() == 0
        assert page.inner_text("h1") == "Orders"


def test_the_slow_request_is_not_missed(serving: Serving, page: Any) -> None:
    """It ends after a request that began later."""
    with serving("flask") as address:
        page.goto(f"{address}/")
        page.wait_for_function(WAITS % 1)
        page.evaluate("() => { fetch('/slow'); return fetch('/data').then(one => one.json()) }")
        page.wait_for_function(WAITS % 2)
        page.evaluate("fetch('/go').then(one => one.text())")
        page.wait_for_function(WAITS % 4)
        page.get_by_role("button").click()
        shown = " ".join(page.locator("li").all_inner_texts())
        assert "GET /slow 200" in shown
        assert "20 queries" in shown


@pytest.mark.parametrize(
    "how", ["document.body = document.createElement('body')", "document.body.innerHTML = 'new'"]
)
@pytest.mark.repeats
def test_a_page_that_replaces_its_body_keeps_the_badge(
    serving: Serving, page: Any, how: str
) -> None:
    with serving("flask") as address:
        page.goto(f"{address}/")
        page.wait_for_function(WAITS % 1)
        page.evaluate(f"() => {{ {how} }}")
        page.wait_for_function(WAITS % 1)
        assert "20 queries" in page.get_by_role("button").inner_text()
        assert page.console == []
