"""Profile the functions of the program's main thread with cProfile.

`queryprof run --cprofile` uses this, from the start of the program to its end, like `python -m
cProfile`.
"""

from __future__ import annotations

import atexit
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cProfile import Profile


def start_function_profile(path: str) -> None:
    """Profile until this process ends, then write the statistics to `path`."""
    from cProfile import Profile

    profile = Profile()
    # Exit functions of the program are registered later, so they run earlier.
    atexit.register(_write_statistics, profile, path, os.getpid())
    profile.enable()


def _write_statistics(profile: Profile, path: str, pid: int) -> None:
    profile.disable()
    if pid != os.getpid():
        return  # in a forked child, the statistics belong to its parent
    try:
        profile.dump_stats(path)
    except OSError as error:
        sys.stderr.write(f"queryprof: the function times are lost: {error}\n")
