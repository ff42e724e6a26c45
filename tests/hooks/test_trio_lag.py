"""The lag of trio's tasks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("trio")

from queryprof.hooks.event_loops import trio_loop


def test_waiting_for_io_is_no_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks that are due while the loop waits run at once: only a busy loop delays them."""
    recorded: list[tuple[float, ...]] = []
    now_s = 100.0

    def record(due_s: float, end_s: float, busy_since_s: float) -> float:
        recorded.append((due_s, end_s, busy_since_s))
        return end_s + 0.1

    monkeypatch.setattr(trio_loop, "monotonic", lambda: now_s)
    instrument = object.__new__(trio_loop.StepInstrument)
    instrument._beats = SimpleNamespace(record=record, interval_s=0.1)
    instrument._due_s, instrument._busy_since_s = 100.1, 100.0
    now_s = 100.05
    instrument.before_io_wait(5)
    now_s = 105.0
    instrument.after_io_wait(5)
    now_s = 105.02
    instrument.before_io_wait(5)
    assert recorded == [(100.1, 100.05, 100.0), (pytest.approx(100.15), 105.02, 105.0)]
