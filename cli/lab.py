"""`queryprof lab`: experiments with recorded workloads."""

from __future__ import annotations

import click

from queryprof.cli.group import LazyGroup

EXPERIMENTS = ("replay", "pragmas:tune", "workers:tune", "grow", "scenario")


@click.group(cls=LazyGroup, sections={"Commands": EXPERIMENTS})
def lab() -> None:
    """Repeat a workload with other settings on copies of its database.

    Settings are pragmas, indexes, SQLite libraries and numbers of workers.
    """
