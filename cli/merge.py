"""`queryprof merge`: adds up traces."""

from __future__ import annotations

import os

import click

from queryprof.errors import QueryprofError


def _is_same(output: str, given: str) -> bool:
    return os.path.exists(given) and os.path.samefile(output, given)


@click.command()
@click.argument("output", type=click.Path())
@click.argument("inputs", type=click.Path(), nargs=-1, required=True)
@click.option("--force", is_flag=True, help="Replaces OUTPUT also where there is one input.")
def merge(output: str, inputs: tuple[str, ...], force: bool) -> None:
    """Adds up the traces INPUTS... into OUTPUT."""
    from queryprof.cli.progress import progress
    from queryprof.collect.merge import merge_traces
    from queryprof.collect.reader import opened

    is_there = os.path.isfile(output) and os.path.getsize(output) > 0
    if is_there and len(inputs) == 1 and not force and not _is_same(output, inputs[0]):
        raise QueryprofError(
            f"{output}: is there, and there is one input: write a new name first (queryprof merge"
            f" ALL.qprof {output} {inputs[0]}); --force replaces it"
        )
    with progress("merging", len(inputs)) as step:
        merge_traces(output, inputs, step, opened)
