"""A real browser, in which pages are opened."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")

BROWSER = [
    pytest.mark.once,
    pytest.mark.skipif(
        CHROMIUM is None, reason="there is no chromium: apt-get install chromium-headless-shell"
    ),
    pytest.mark.xdist_group("browser"),
]


class Page:
    """A page that is open, with all that it printed and requested."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.said: list[str] = []
        self.requested: list[str] = []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self.requested.append(request.url))
        page.on("dialog", lambda dialog: self.said.append(dialog.message))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.page, name)

    def ready(self) -> None:
        self.page.wait_for_selector("html[data-ready]", timeout=20_000)


Opening = Callable[..., Any]
