"""Fixtures that need a browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from report.browser import CHROMIUM, Opening, Page


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Any, tmp_path: Path) -> Opening:
    @contextmanager
    def opening(text: str, at: str = "", width: int = 1400, **options: Any) -> Iterator[Page]:
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8")
        context = chromium.new_context(viewport={"width": width, "height": 800}, **options)
        page = Page(context.new_page())
        page.goto(f"{path.as_uri()}{at}")
        yield page
        assert set(page.requested) == {path.as_uri()}
        context.close()

    return opening
