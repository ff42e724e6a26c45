"""A real browser that opens pages."""

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


ICON = "/favicon.ico"
"""Some browsers request it for every page, and print that it is missing."""


def printed_by(page: Any) -> list[str]:
    """Return the console output of the page from now on, including its errors."""
    printed: list[str] = []

    def note(message: Any) -> None:
        if not message.location["url"].endswith(ICON):
            printed.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: printed.append(str(error)))
    return printed


class Page:
    """An open page, with all its console output and requests."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.console = printed_by(page)
        self.requested: list[str] = []
        page.on("request", lambda request: self._note(request.url))
        page.on("dialog", lambda dialog: self.console.append(dialog.message))

    def _note(self, url: str) -> None:
        if not url.endswith(ICON):
            self.requested.append(url)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.page, name)

    def ready(self) -> None:
        self.page.wait_for_selector("html[data-ready]", timeout=20_000)


Opening = Callable[..., Any]
