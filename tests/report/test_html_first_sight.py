"""The first screen of the page in a real browser."""

from __future__ import annotations

from dataclasses import replace

from analysis.by_hand import MAIN, aggregate, profile_of
from report.browser import BROWSER, Opening
from report.test_html_browser import many

from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.report import Report
from queryprof.findings.finding import Finding, Severity
from queryprof.model import Frame, LockHold, Thread
from queryprof.report.html.html_report import html_page
from queryprof.report.html.page_data import page_data

pytestmark = BROWSER


def test_what_is_seen_first(opened: Opening) -> None:
    """It has three findings and ten rows of a table. The rest can be opened. Equal rows are
    combined.
    """
    profile = many()
    paths = [(Frame(f"hold_{n}", "/app/hold.py", n + 1), MAIN) for n in range(14)]
    holds = tuple(
        LockHold(
            "write",
            "/x/shop.db",
            "UPDATE t",
            path,
            "",
            Thread(thread, "T"),
            "COMMIT",
            path,
            2,
            10**6,
            10**6,
            0,
            0,
            3,
            0,
        )
        for path in paths
        for thread in (1, 2)
    )
    found = [
        Finding(
            "full_scan",
            Severity.HIGH,
            0.2,
            10**8,
            one.statement,
            CallSite(one.path[0], ()),
            None,
            ("slow",),
            "Index.",
        )
        for one in profile.aggregates[:5]
    ]
    data = page_data(Report(replace(profile, lock_holds=holds)), found, None)
    with opened(html_page(data, "first")) as page:
        page.ready()
        assert page.locator("#findings .findings > li:visible").count() == 3
        assert (
            "changes together save up to 200 ms of the run (500 ms)"
            in page.locator("#findings").inner_text()
        )
        assert page.locator("#locks tbody tr:visible").count() == 10
        assert page.locator("#locks tbody tr").nth(0).locator("td").nth(2).inner_text() == "4"
        for part, rows in (("#findings", "2 findings more"), ("#locks", "4 rows more")):
            page.locator(f"{part} summary").click()
            assert page.locator(f"{part} summary").inner_text() == rows
        assert page.locator("#locks tbody tr:visible").count() == 14
        assert page.console == []


def test_percentiles_do_not_lie_on_each_other(opened: Opening) -> None:
    one = aggregate("SELECT 1", ns=10**6, count=100)
    with opened(html_page(page_data(Report(profile_of(one)), (), None), "p"), at="#/s/0") as page:
        page.ready()
        lane = "element => getComputedStyle(element).paddingTop"
        assert len({mark.evaluate(lane) for mark in page.locator(".mark").all()}) == 3
