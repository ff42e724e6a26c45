"""Spans of the program inside a request that the badge lists."""

from __future__ import annotations

import pytest

from queryprof.core.span import nesting
from queryprof.web.badge_requests import RecentRequests

pytestmark = pytest.mark.once


def test_spans_stay_the_request_s_until_the_last_one_has_ended() -> None:
    requests = RecentRequests()
    first = requests.begin("GET /1", "/1")
    second = requests.begin("GET /2", "/2")
    assert nesting.is_off
    requests.end(first)
    assert nesting.is_off
    requests.end(second)
    assert not nesting.is_off
