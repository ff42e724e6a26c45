"""The page in a real browser: how it looks, what keys and clicks do, and that text is only text."""

from __future__ import annotations

import pytest
from analysis.by_hand import MAIN, aggregate, json_of, process, profile_of
from report.browser import BROWSER, Opening, Page
from report.test_hostile_names import profile_of as hostile_profile

from queryprof.analysis.call_sites import CallSite
from queryprof.analysis.report import Report
from queryprof.analysis.tree import Node
from queryprof.findings.finding import Finding, Severity
from queryprof.model import Frame, Interval, Profile
from queryprof.model.advice import Advice, Cost, DatabaseChange, Proof
from queryprof.report.html.html_report import html_page
from queryprof.report.html.page_data import page_data

axe = pytest.importorskip("axe_playwright_python.sync_playwright")

pytestmark = BROWSER

STATEMENTS = 300
HOSTILE = (
    "</script><script>document.title='no'</script><img src=x onerror=\"document.title='no'\">\u2028"
)


def many() -> Profile:
    """Return a profile with content for each part of the page."""
    profile = hostile_profile("plain")
    aggregates = [
        aggregate(
            f"SELECT name, price FROM product_{n} WHERE id = ?",
            (Frame(f"load_{n % 9}", f"/app/store_{n % 5}.py", n + 1), MAIN),
            10**6 * (STATEMENTS - n),
            count=n + 1,
        )
        for n in range(STATEMENTS)
    ]
    run = process(start_unix_ns=0, end_unix_ns=10**9)
    timeline = tuple(Interval(n << 27, n, n, n << 23) for n in range(7))
    return Profile(
        (run,),
        (*profile.aggregates, *aggregates),
        profile.errors,
        loops=profile.loops,
        spans=profile.spans,
        slow_spans=profile.slow_spans,
        timeline_width_ns=1 << 27,
        timeline=timeline,
        plans=profile.plans,
    )


@pytest.fixture(scope="module")
def text() -> str:
    profile = many()
    site = CallSite(profile.aggregates[5].path[0], (MAIN,))
    finding = Finding(
        "full_scan",
        Severity.HIGH,
        0.3,
        10**8,
        profile.aggregates[5].statement,
        site,
        None,
        ("30 executions read 28,297 rows to return 6.4",),
        "Create an index.",
        "CREATE INDEX i ON t (a);",
        "The gain is an estimate.",
    )
    source = [(number, f"line = {number}") for number in range(1, 8)]
    functions = Node("", None, 4 * 10**9)
    functions.child_named("main", Frame("main", "/app/main.py", 1)).total_ns = 3 * 10**9
    data = page_data(
        Report(profile),
        [finding],
        lambda frame: source,
        functions=functions,
        advice=advice(profile.aggregates[5].statement),
    )
    return html_page(data, "queryprof: test")


def advice(statement: str) -> Advice:
    before, after = Cost(4e6, 3000.0, 50.0), Cost(1e6, 30.0, 5.0)
    proof = Proof(statement, 9, 36 * 10**6, before, after, ("i",), True, "", True)
    changes = (
        DatabaseChange(
            "CREATE INDEX i ON t (a);", "DROP INDEX i;", "i", "t", 24e6, 4096, 1500.0, 7
        ),
        DatabaseChange("ANALYZE;", "DELETE FROM sqlite_stat1;", "", "", 3e6, 0, None, 0),
    )
    return Advice("a.db", changes, (), (proof,), (), (), "3.40.1", "3.39.0", 12, False, 1.0)


@pytest.mark.slow
def test_what_was_proved_is_shown(opened: Opening, text: str) -> None:
    with opened(text) as page:
        page.ready()
        shown = page.locator("#proved").inner_text()
        for words in (
            "Proved on a copy",
            "2 changes cut the recorded time from 36.0 ms to 9.01 ms",
            "SQLite 3.39.0",
            "chosen on a sample (one row in 12",
            "CREATE INDEX i ON t (a);",
            "saves 24.0 ms (66.7%), +4.1 kB, +1.50 µs per insert",
            "proved, x4; values from the database",
            "4.00 ms",
            "1.00 ms",
        ):
            assert words in shown, shown
        for width in (1280, 400):
            page.set_viewport_size({"width": width, "height": 800})
            boxes = page.locator("#proved .what").evaluate_all(
                "all => all.map(one => [one.scrollWidth, one.clientWidth])"
            )
            assert len(boxes) == 3
            assert all(needed <= shown for needed, shown in boxes) or width == 400, boxes
            assert all(shown > width / 2 for _, shown in boxes), boxes
        bars = page.locator("#proved .bar").evaluate_all("all => all.map(one => one.style.width)")
        assert bars == ["100%", "33.333%", "25%"]
        assert not page.console


def column(page: Page, number: int) -> list[str]:
    page.locator("table.statements .what a").first.wait_for()
    cells = page.locator(f"table.statements tbody tr:not([aria-hidden]) td:nth-child({number})")
    found: list[str] = cells.all_inner_texts()
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("at", ["", "#/s/3"])
@pytest.mark.slow
def test_it_can_be_used_by_everybody(opened: Opening, text: str, scheme: str, at: str) -> None:
    """Axe finds nothing, and the console is empty."""
    with opened(text, at, color_scheme=scheme, bypass_csp=True) as page:
        page.ready()
        found = axe.Axe().run(page.page).response["violations"]
        assert [
            (one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in found
        ] == []
        assert page.console == []


@pytest.mark.parametrize("width", [400, 900, 1400])
@pytest.mark.parametrize("at", ["", "#/s/3"])
@pytest.mark.repeats
def test_it_fits_the_window(opened: Opening, text: str, width: int, at: str) -> None:
    with opened(text, at, width) as page:
        page.ready()
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wide) == 0
        assert page.evaluate("document.querySelectorAll('*').length") < 6000
        assert page.console == []


@pytest.mark.slow
def test_it_sorts_by_each_column(opened: Opening, text: str) -> None:
    with opened(text) as page:
        page.ready()
        heads = page.locator("table.statements th button")
        for number in range(heads.count()):
            orders = []
            for _ in range(2):
                heads.nth(number).click()
                orders.append(
                    page.locator("table.statements th").nth(number).get_attribute("aria-sort")
                )
            assert sorted(orders) == ["ascending", "descending"]
        heads.nth(2).click()
        counts = [int(each.replace(",", "")) for each in column(page, 3)]
        assert counts == sorted(counts, reverse=True)
        assert counts[0] == STATEMENTS


def test_it_searches(opened: Opening, text: str) -> None:
    """It searches SQL, functions and files. All words must match."""
    with opened(text) as page:
        page.ready()
        page.keyboard.press("/")
        for words, found in (
            ("product_17 ", 11),
            ("product_17 store_2", 3),
            ("LOAD_8", 33),
            ("zzz", 0),
        ):
            page.fill("#search", words.strip() if words != "product_17 " else "product_17")
            message = page.locator(".tools [role=status]").inner_text()
            none = "" if found else "No statement contains all of these words: "
            assert message == f"{none}{found} of 301 statements", words


@pytest.mark.slow
def test_rows_have_their_numbers_wherever_the_table_is(opened: Opening, text: str) -> None:
    """The table holds only the rows near the window. The key j moves the mark through all rows."""
    with opened(text) as page:
        page.ready()
        for _ in range(200):
            page.keyboard.press("j")
        marked = page.locator("tr.on")
        assert marked.get_attribute("aria-rowindex") == "201"
        assert page.evaluate("scrollY") > 1000
        numbers = page.locator("tr[aria-rowindex]").evaluate_all(
            "rows => rows.map(row => Number(row.getAttribute('aria-rowindex')))"
        )
        body = [number for number in numbers if number > 1]
        assert body == list(range(body[0], body[0] + len(body)))
        assert body[0] > 2


def test_the_keyboard_is_enough(opened: Opening, text: str) -> None:
    """Enter opens the third row, and Escape returns to it."""
    with opened(text) as page:
        page.ready()
        for _ in range(3):
            page.keyboard.press("j")
        before = page.evaluate("scrollY")
        third = page.locator("tr.on .what a").inner_text()
        page.keyboard.press("Enter")
        page.wait_for_selector("#page h1")
        assert page.locator("#page pre.sql").first.inner_text() == third
        assert page.locator("#page h1").evaluate("e => e === document.activeElement")
        page.keyboard.press("Escape")
        page.wait_for_selector("#overview:not([hidden])")
        assert (before, page.evaluate("scrollY")) == (before, before)
        page.go_back()
        page.wait_for_selector("#page h1")
        page.reload()
        page.ready()
        assert page.locator("#page pre.sql").first.inner_text() == third
        page.keyboard.press("d")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        page.keyboard.press("?")
        assert page.locator("dialog").is_visible()
        page.keyboard.press("Escape")
        assert page.locator("#page h1").is_visible()
        assert page.console == []


def test_the_tree_is_zoomed_and_walked(opened: Opening, text: str) -> None:
    with opened(text) as page:
        page.ready()
        tree = page.locator("[role=tree]")
        nodes = tree.locator("[role=treeitem]").count()
        tree.locator("[role=treeitem]", has_text="load_3()").first.click()
        chosen = tree.locator("[aria-selected=true]")
        assert chosen.get_attribute("aria-label").startswith("load_3() ")
        assert tree.locator("[role=treeitem]").count() < nodes
        assert "of the database time" in page.locator("#from [role=status]").inner_text()
        page.keyboard.press("ArrowUp")
        assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith(
            "main() "
        )
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")
        assert tree.locator("[role=treeitem]").count() == nodes
        assert page.console == []


def test_text_of_the_program_is_only_text(opened: Opening) -> None:
    """It makes no element, title or request, and the policy blocks forbidden scripts."""
    data = page_data(Report(hostile_profile(HOSTILE)), (), None)
    with opened(html_page(data, "queryprof: hostile")) as page:
        page.ready()
        assert page.title() == "queryprof: hostile"
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 2
        assert page.locator("#statements", has_text="</script><script>").count() == 1
        assert page.console == []
        for number in range(
            page.evaluate("document.querySelectorAll('.statements .what a').length")
        ):
            page.goto(page.url.partition("#")[0] + f"#/s/{number}")
            page.wait_for_selector("#page h1")
            assert page.locator("img").count() == 0
        assert page.console == []
        refused = page.evaluate("""async () => {
            const found = [];
            try { document.body.innerHTML = "<b>no</b>"; } catch (error) { found.push(error.name); }
            try { await fetch("https://example.com"); } catch (error) { found.push(error.name); }
            return found;
        }""")
        assert refused == ["TypeError", "TypeError"]


def test_packed_data_is_unpacked_or_the_page_shows_what_it_needs(
    opened: Opening, text: str
) -> None:
    profile = profile_of(*(aggregate(f"SELECT {'x' * 60}{n}", ns=n + 1) for n in range(3000)))
    large = html_page(page_data(Report(profile), (), None), "large")
    assert 'data-encoding="deflate"' in large
    with opened(large) as page:
        page.ready()
        assert "3,000 statements" in page.locator(".tools [role=status]").inner_text()
        assert page.evaluate("document.querySelectorAll('*').length") < 6000
    old = large.replace("(() => {\n", "(() => {\nconst DecompressionStream = undefined;\n", 1)
    with opened(old, bypass_csp=True) as page:
        page.wait_for_selector("#app p")
        assert "cannot unpack" in page.locator("#app").inner_text()
    with opened(text, java_script_enabled=False) as page:
        assert "needs JavaScript" in page.content()


@pytest.mark.slow
def test_it_can_be_printed(opened: Opening, text: str) -> None:
    with opened(text) as page:
        page.ready()
        page.emulate_media(media="print")
        assert not page.locator("header").is_visible()
        assert page.locator("h1").first.is_visible()
        assert len(page.pdf()) > 10_000


def test_a_request_is_shown_call_by_call(opened: Opening, text: str) -> None:
    """The first request is open. Others are filled when they are opened, also by keyboard."""
    runs = many().slow_spans[0].runs
    with opened(text) as page:
        page.ready()
        spans = page.locator("details.span")
        assert spans.first.locator(".runs li").count() == len(runs)
        bar = spans.first.locator(".run").bounding_box()
        track = spans.first.locator(".track").bounding_box()
        assert track["x"] <= bar["x"]
        assert bar["width"] == pytest.approx(track["width"] / 10, rel=0.1)
        second = spans.nth(1)
        assert second.locator(".runs li").count() == 0
        second.locator("summary").focus()
        page.keyboard.press("Enter")
        second.locator(".runs li").first.wait_for()
        assert page.locator("figure.stalls rect").count() == 1
        assert page.console == []


def test_database_time_or_all_time(opened: Opening, text: str) -> None:
    """The call paths have a switch if cProfile has measured all functions."""
    with opened(text) as page:
        page.ready()
        tree = page.locator("[role=tree]")
        assert tree.get_attribute("aria-label") == "Where database time goes"
        button = page.locator("#from button", has_text="all time")
        assert button.get_attribute("aria-pressed") == "false"
        button.focus()
        page.keyboard.press("Enter")
        assert button.get_attribute("aria-pressed") == "true"
        assert tree.get_attribute("aria-label") == "Where all time goes"
        message = tree.locator("[role=treeitem]").nth(1).get_attribute("aria-label")
        assert message == "main() main.py:1: 75.0%, 3.00 s"
        assert page.console == []


def test_it_agrees_with_the_json_report(opened: Opening, text: str) -> None:
    """They agree on the finding's sentence, that of the vital few, and the first row of
    the table.
    """
    document = json_of(Report(many()))
    with opened(text) as page:
        page.ready()
        message = page.locator("h1").first.inner_text()
        assert message.endswith(": Full table scan, saves up to 100 ms (30.0% of the run)")
        assert (
            page.locator("#vital > p").first.inner_text().startswith(f"{document['vital_few']} of ")
        )
        first = document["views"]["statement"][0]
        page.locator("#search").scroll_into_view_if_needed()
        assert column(page, 3)[0] == f"{first['totals']['executions']:,}"
        assert page.locator("table.statements .what a").first.inner_text() == first["name"]


def test_a_recording_against_another(opened: Opening) -> None:
    before = profile_of(aggregate("SELECT 1", ns=10**6), aggregate("SELECT 2", ns=10**6))
    after = profile_of(aggregate("SELECT 1", ns=3 * 10**6), aggregate("SELECT 3", ns=10**6))
    data = page_data(Report(after), (), None, Report(before))
    with opened(html_page(data, "against"), color_scheme="dark") as page:
        page.ready()
        assert "was 1.00 ms: +200%" in page.locator("#vital").inner_text()
        assert column(page, 3) == ["1.00 ms", "?"]
        page.goto(page.url + "#/s/0")
        assert "change\n+200%" in page.locator(".figures").inner_text()


def test_without_calls(opened: Opening) -> None:
    with opened(html_page(page_data(Report(Profile((process(),), ())), (), None), "empty")) as page:
        page.ready()
        assert page.locator("h1").first.inner_text() == "No database time"
        assert page.console == []
