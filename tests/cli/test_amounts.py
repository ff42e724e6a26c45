"""Durations and sizes on the command line."""

from __future__ import annotations

import click
import pytest

from queryprof.cli.amounts import DURATION, SIZE, Amount, duration, size

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (DURATION, "500ms", 0.5),
        (DURATION, "1.5s", 1.5),
        (DURATION, "5m", 300),
        (DURATION, "5M", 300),
        (DURATION, "90d", 90 * 86_400),
        (duration(0.05, 3600), "50ms", 0.05),
        (duration(0.05, 3600), "1h", 3600),
        (SIZE, "1KB", 1000),
        (SIZE, "1.5gb", 1.5e9),
    ],
)
def test_a_value_is_in_the_base_unit(kind: Amount, text: str, value: float) -> None:
    assert kind.convert(text, None, None) == pytest.approx(value)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (DURATION, "60", "'60' is not a duration: 500ms, 60s, 5m, 90d"),
        (DURATION, "0s", "'0s' is not a duration"),
        (DURATION, "-1s", "'-1s' is not a duration"),
        (DURATION, ".s", "'.s' is not a duration"),
        (DURATION, "nans", "'nans' is not a duration"),
        (DURATION, "1e9s", "'1e9s' is not a duration"),
        (DURATION, f"{'9' * 400}s", "is not a duration"),
        (duration(0.05, 3600), "49ms", "(at least 50ms, at most 1h)"),
        (duration(0.05, 3600), "3601s", "(at least 50ms, at most 1h)"),
        (SIZE, "999B", "'999B' is not a size: 500MB, 1GB (at least 1KB)"),
        (SIZE, "0.9KB", "(at least 1KB)"),
        (size(1e6, 1e12), "9000000TB", "(at least 1MB, at most 1TB)"),
    ],
)
def test_invalid_values_are_reported_with_the_limits(kind: Amount, text: str, message: str) -> None:
    with pytest.raises(click.BadParameter) as wrong:
        kind.convert(text, None, None)
    assert message in wrong.value.message
