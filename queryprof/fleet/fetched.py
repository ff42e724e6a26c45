"""Select complete traces of the sampled hosts, and merge them."""

from __future__ import annotations

import os

from queryprof.collect.merge import merge_traces
from queryprof.errors import QueryprofError, TraceError
from queryprof.trace.opening import opened_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from queryprof.fleet.duck import Selection

CHOSEN = ("service", "version", "environment", "host")


def chosen_traces(paths: Iterable[str], selection: Selection) -> tuple[list[str], list[str]]:
    """Return the traces with a selected process, and why others cannot be read."""
    chosen, left_out = [], []
    for path in paths:
        try:
            if _is_chosen(path, selection):
                chosen.append(path)
        except TraceError as error:
            left_out.append(str(error))
    return chosen, left_out


def _is_chosen(path: str, selection: Selection) -> bool:
    with opened_file(path) as trace:
        columns = (*CHOSEN, "window_start_unix_ns", "start_unix_ns", "end_unix_ns")
        for *names, window, start, end in trace.rows("process", columns):
            wanted = [getattr(selection, one) for one in CHOSEN]
            is_named = all(want in (None, name) for want, name in zip(wanted, names, strict=True))
            begin_s, end_s = (window or start) / 1e9, end / 1e9
            is_later = selection.since is None or end_s >= selection.since.timestamp()
            is_earlier = selection.until is None or begin_s < selection.until.timestamp()
            if is_named and is_later and is_earlier:
                return True
    return False


def fetch(output: str, paths: list[str], step: Callable[[], None]) -> tuple[int, list[str]]:
    """Merge traces into one.

    Returns:
        The number of process windows that are in more than one trace, and the reasons why damaged
        traces are missing.

    Raises:
        QueryprofError: there are no traces, or the result cannot be written.
    """
    if not paths:
        raise QueryprofError(
            "no whole trace is selected; queryprof fleet ship --traces 1% sends some"
        )
    if any(os.path.exists(output) and os.path.samefile(output, path) for path in paths):
        raise QueryprofError(f"{output}: is one of the fleet's traces; choose another name")
    try:
        return merge_traces(output, paths, step, collapses=True), []
    except TraceError:
        damaged = {path: why for path in paths if (why := _fault_of(path))}
        sound = [path for path in paths if path not in damaged]
        if not damaged or not sound:
            raise
    return merge_traces(output, sound, collapses=True), [*damaged.values()]


def _fault_of(path: str) -> str:
    """Return why a trace's rows cannot be read, or ""."""
    try:
        merge_traces(os.devnull, [path], collapses=True)
    except TraceError as error:
        return str(error)
    return ""
