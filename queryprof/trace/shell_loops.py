"""Hide the shell's own work on event loops in which IPython runs cells.

Only the program's own work on these loops counts. Neither a long-running cell nor the shell that
waits for it is a fault.
"""

from __future__ import annotations

from dataclasses import replace

from queryprof.model import Distribution, Loop, Stall, StallEvent, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SHELLS = ("IPython", "ipykernel", "jupyter_client")
"""Packages whose steps run cells or wait for cells."""

SHELL_PACKAGES = (*SHELLS, "tornado", "traitlets", "zmq")
"""Packages whose steps belong to the shell, in a loop that runs cells."""


def without_shells(loops: Iterable[Loop]) -> Iterator[Loop]:
    """Yield the loops without a shell's steps. Loops with no other steps are omitted.

    A shell loop's lag cannot be separated from the run time of its cells, so it is cleared.
    """
    for loop in loops:
        ran: list[Step | Stall] = [*loop.functions, *loop.stalls]
        if not any(_is_in_packages(one, SHELLS) for one in ran):
            yield loop
            continue
        functions = tuple(one for one in loop.functions if _is_of_program(one))
        stalls = tuple(one for one in loop.stalls if _is_of_program(one))
        if functions or stalls:
            yield replace(
                loop,
                timer_lag=Distribution(),
                beat_lag=Distribution(),
                functions=functions,
                stalls=stalls,
                stall_events=tuple(one for one in loop.stall_events if _is_of_program(one)),
            )


def _is_of_program(one: Step | Stall | StallEvent) -> bool:
    return one.function.kind != "standard" and not _is_in_packages(one, SHELL_PACKAGES)


def _is_in_packages(one: Step | Stall | StallEvent, packages: Iterable[str]) -> bool:
    if one.function.kind == "user":  # the program's directory may have any name
        return False
    file = one.function.file.replace("\\", "/")  # the path may come from another operating system
    return any(f"/{name}/" in file for name in packages)
