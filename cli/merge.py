"""`queryprof merge`: adds up traces."""

from __future__ import annotations

import click


@click.command()
@click.argument("output", type=click.Path())
@click.argument("inputs", type=click.Path(), nargs=-1, required=True)
def merge(output: str, inputs: tuple[str, ...]) -> None:
    """Adds up the traces INPUTS... into OUTPUT."""
    from queryprof.cli.progress import progress
    from queryprof.trace.merge import merge_traces
    from queryprof.trace.reader import opened

    with progress("merging", len(inputs)) as step:
        merge_traces(output, inputs, step, opened)
