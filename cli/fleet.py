"""`queryprof fleet`: recordings of many hosts."""

from __future__ import annotations

import click

from queryprof.cli.group import LazyGroup

SECTIONS = {
    "Ask": tuple(
        f"{name}:questions"
        for name in ("report", "compare", "outliers", "trend", "plans", "findings")
    ),
    "Collect": ("ship", "export:fleet_export", "compact"),
    "Monitor": ("prometheus",),
}


@click.group(cls=LazyGroup, sections=SECTIONS, recording=frozenset({"ship", "prometheus"}))
def fleet() -> None:
    """Collect and analyze the recordings of many hosts."""
