"""The event loops in which IPython runs a program's cells: only what the program itself gives to
such a loop counts. That a cell takes long, and the shell waits for it, is no fault.
"""

from __future__ import annotations

from dataclasses import replace

from queryprof.model import Distribution, Loop, Stall, StallEvent, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SHELLS = ("IPython", "ipykernel", "jupyter_client")
"""Packages whose steps run cells, or wait for one that does."""

THEIRS = (*SHELLS, "tornado", "traitlets", "zmq")
"""Packages whose steps are the shell's own, in a loop that runs cells."""


def without_shells(loops: Iterable[Loop]) -> Iterator[Loop]:
    """The loops, those of a shell without its steps; one that has no others is left out.

    How late such a loop was cannot be separated from how long its cells took: its lags are empty.
    """
    for loop in loops:
        ran: list[Step | Stall] = [*loop.functions, *loop.stalls]
        if not any(_is_of(one, SHELLS) for one in ran):
            yield loop
            continue
        functions = tuple(one for one in loop.functions if _is_programs(one))
        stalls = tuple(one for one in loop.stalls if _is_programs(one))
        if functions or stalls:
            yield replace(
                loop,
                timer_lag=Distribution(),
                beat_lag=Distribution(),
                functions=functions,
                stalls=stalls,
                stall_events=tuple(one for one in loop.stall_events if _is_programs(one)),
            )


def _is_programs(one: Step | Stall | StallEvent) -> bool:
    return one.function.kind != "standard" and not _is_of(one, THEIRS)


def _is_of(one: Step | Stall | StallEvent, packages: Iterable[str]) -> bool:
    if one.function.kind == "user":  # whatever its directory is called
        return False
    file = one.function.file.replace("\\", "/")  # it may be of another system
    return any(f"/{name}/" in file for name in packages)
