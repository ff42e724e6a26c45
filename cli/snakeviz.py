"""`queryprof snakeviz`: show the database time in snakeviz."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys

import click

from queryprof.errors import QueryprofError


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("file", type=click.Path())
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def snakeviz(file: str, arguments: tuple[str, ...]) -> None:
    """Open FILE in snakeviz; ARGUMENTS after -- go to snakeviz."""
    from queryprof.cli.export import export_bytes
    from queryprof.confined.folder import temporary_folder
    from queryprof.output_file import write_output

    if importlib.util.find_spec("snakeviz") is None:
        raise QueryprofError("snakeviz is not installed; run: pip install snakeviz")
    content = export_bytes(file, "pstats")
    with temporary_folder() as folder:
        name = os.path.splitext(os.path.basename(file))[0]
        path = os.path.join(folder, f"{name}.prof")
        write_output(path, content, b"")
        # Ending this command ends snakeviz: subprocess.call kills it when an exception passes.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        try:
            status = subprocess.call([sys.executable, "-P", "-m", "snakeviz", *arguments, path])
        except KeyboardInterrupt:  # the normal way to end snakeviz
            status = 0
    sys.exit(status)
