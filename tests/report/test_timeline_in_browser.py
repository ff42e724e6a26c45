"""The picture of the last seconds in a browser."""

from __future__ import annotations

import pytest
from cli.test_last import busy_server
from report.browser import BROWSER, Opening
from report.test_timeline_page import page_of

axe = pytest.importorskip("axe_playwright_python.sync_playwright")

pytestmark = BROWSER


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_everybody_can_use_it(opened: Opening, scheme: str, width: int) -> None:
    """It fits the window, loads nothing and prints nothing, and axe finds nothing."""
    with opened(page_of(busy_server()), "", width, color_scheme=scheme, bypass_csp=True) as page:
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wide) == 0
        found = axe.Axe().run(page.page).response["violations"]
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
        assert page.console == []
