"""`queryprof doctor`: print which features work here, and why others do not."""

from __future__ import annotations

import os
import platform
import sys

import click

from queryprof.version import __version__

MAX_LEFT = 10
"""Maximum number of lines about memory that ended processes left."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from queryprof.core.settings import Settings
    from queryprof.hooks.imports import ImportHooks


@click.command()
@click.option("--clean", "cleans", is_flag=True, help="Write the traces of ended processes.")
def doctor(cleans: bool) -> None:
    """Show what queryprof can measure here.

    Also list the recordings that killed processes left in shared memory. --clean writes their
    traces and frees the memory. It prints the files that it cannot save because the trace's
    directory is gone or read-only.
    """
    if cleans:
        from queryprof.cli.clean import clean

        clean()
        return
    import sqlite3

    from queryprof.analysis.overview import COARSE_TICK_NS, coarse_clock_caution
    from queryprof.core import _core
    from queryprof.core.absence import absence_reason
    from queryprof.core.settings import read_settings
    from queryprof.hooks.libraries import DRIVERS
    from queryprof.recorder.session import session
    from queryprof.report.inert import escape_control_characters
    from queryprof.report.text.deployment import deployments_in_words

    lines = [
        ("queryprof", __version__),
        ("python", f"{platform.python_version()} {sys.executable}"),
    ]
    if reason := absence_reason():
        lines += [
            ("core", f"none: {reason}"),
            ("recording", "off: spans, limits and similar calls do nothing"),
            ("reading", "works: report, analyze, html, compare, export, merge"),
        ]
        for name, text in lines:
            click.echo(escape_control_characters(f"{name:<11} {text}"))
        return
    settings = read_settings()
    session.start(settings)
    source, ns_per_tick = _core.clock_source()
    cost_ns = _core.probe_cost_ns()
    counters, files = session.counters_off, session.files_off
    session.libraries.complain = lambda _: None  # printed below
    drivers = [(name, _driver_line(name, session.libraries)) for name in DRIVERS]
    direct = _core.frames_are_direct()
    session.stop()
    rows = "every row is timed" if source != "monotonic clock" else "row times are estimates"
    if ns_per_tick >= COARSE_TICK_NS:
        rows += f"; {coarse_clock_caution(ns_per_tick)}"
    lines += [
        ("core", f"loaded from {_core.__file__}"),
        ("clock", f"{source}, {ns_per_tick:.4f} ns per tick; {rows}"),
        ("frames", f"read {'from the interpreter' if direct else 'through public functions'}"),
        (
            "cost",
            f"{cost_ns:.0f} ns per call, measured now, plus the time to read SQLite's counters",
        ),
        ("sqlite3", f"SQLite {sqlite3.sqlite_version}, measured"),
        (
            "counters",
            f"off: {counters}" if counters else "on: VM steps, scans, sorts, page fetches",
        ),
        ("files", f"off: {files}" if files else "watched: locks, syncing, reading, writing"),
        *drivers,
        ("roots", ", ".join(settings.roots) or "working directory and the script's directory"),
        ("call path", f"{settings.call_path_frames} frames"),
        (
            "names",
            deployments_in_words([settings.deployment]) or "not set (QUERYPROF_SERVICE, ...)",
        ),
        *([("windows", _windows_line(settings))] if settings.window_ns else []),
        ("parameters", "kept (secrets may be in the trace)" if settings.parameters else "not kept"),
        ("startup", _startup_line()),
        *[("unsaved", text) for text in _leftover_lines()],
    ]
    for name, text in lines:
        click.echo(escape_control_characters(f"{name:<11} {text}"))


def _windows_line(settings: Settings) -> str:
    from queryprof.core.settings import WINDOWS_NS

    (length,) = [name for name, ns in WINDOWS_NS.items() if ns == settings.window_ns]
    kept = f"each process keeps its latest {settings.kept}"
    return f"one file per {length} instead of one trace; {kept}"


def _leftover_lines() -> list[str]:
    """Return a line for each trace whose ended processes left recordings in memory."""
    from queryprof.analysis.units import counted, format_bytes
    from queryprof.errors import TraceError
    from queryprof.region.identity import region_trace_path
    from queryprof.region.region import opened_region
    from queryprof.region.region_files import is_living, readable_regions

    left: dict[tuple[str, bool | None], list[int]] = {}
    for path in readable_regions():
        try:
            with opened_region(path) as region:
                lives = is_living(region)
                if not lives:
                    used = os.stat(path).st_blocks * 512
                    left.setdefault((region_trace_path(region), lives), []).append(used)
        except (TraceError, OSError, ValueError):
            continue
    lines = [
        f"{counted(len(sizes), 'recording')}, {format_bytes(sum(sizes))} of memory, for {trace}: "
        + ("may still run, in another container" if lives is None else f"queryprof report {trace}")
        for (trace, lives), sizes in sorted(left.items(), key=lambda item: -sum(item[1]))
    ]
    more = [f"and {len(lines) - MAX_LEFT} more"] if len(lines) > MAX_LEFT else []
    advice = ["queryprof doctor --clean writes their traces and frees the memory"] if lines else []
    return [*lines[:MAX_LEFT], *more, *advice]


def _driver_line(name: str, libraries: ImportHooks) -> str:
    """Import a driver, and return its version and whether it is measured, or why it is not."""
    import importlib
    import importlib.metadata
    import importlib.util

    if importlib.util.find_spec(name) is None:
        return "not installed"
    try:
        module = importlib.import_module(name)
    except Exception as error:
        return f"not measured: it cannot be imported: {one_line(error)}"
    failure = _reason_for_driver(name, libraries.failures)
    if failure:
        return f"not measured: {failure}"
    version = getattr(module, "__version__", None)
    if hasattr(module, "VERSION_STRING"):  # PyMySQL's __version__ belongs to the module it replaces
        version = module.VERSION_STRING
    if version is None:  # the package may have another name: pysqlite3-binary
        packages = importlib.metadata.packages_distributions().get(name, ())
        version = next(map(importlib.metadata.version, packages), "of an unknown version")
    counters_off = _reason_for_driver(name, libraries.counters_off)
    counters = f"; counters off: {counters_off}" if counters_off else ""
    return f"{name} {version}, measured{counters}"


def _reason_for_driver(name: str, reasons: Mapping[str, str]) -> str | None:
    """Return the reason for a driver or for one of its submodules; None if there is no reason."""
    found = (text for module, text in reasons.items() if module.partition(".")[0] == name)
    return next(found, None)


def one_line(error: Exception) -> str:
    """Return the message of an exception without line breaks."""
    return " ".join(str(error).split()) or type(error).__name__


def _startup_line() -> str:
    """Return whether QUERYPROF=1 works in this Python without `queryprof run`."""
    import os
    import site

    directories = [*site.getsitepackages(), site.getusersitepackages()]
    found = any(os.path.isfile(os.path.join(d, "queryprof.pth")) for d in directories)
    return (
        "QUERYPROF=1 records any program of this Python installation"
        if found
        else "only `queryprof run` records: queryprof.pth is missing"
    )
