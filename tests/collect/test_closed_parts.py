"""Find the parts of a recording that are final."""

from __future__ import annotations

import pytest

from queryprof.collect.closed_windows import _closed_windows_of, _Recording

pytestmark = pytest.mark.once

PARTS = [f"/x/t.qprof.7-a-{number}.live" for number in (1, 2, 3)]


@pytest.mark.parametrize(("ended", "count"), [([3, 1], 1), ([1, 3], 1), ([2], 2), ([0, 3], 0)])
def test_what_any_region_or_copy_may_still_hold_stays(ended: list[int], count: int) -> None:
    """A living process's region, and copies of it, may repeat a later part."""
    recording = _Recording(parts=PARTS, ended=ended, may_live=True)
    assert [one.path for one in _closed_windows_of(recording)] == PARTS[:count]


def test_an_ended_recording_is_taken_whole() -> None:
    assert [
        one.path for one in _closed_windows_of(_Recording(parts=PARTS, has_ended=True))
    ] == PARTS
