"""Profiles the functions of the program's main thread with cProfile, when `queryprof run
--cprofile` wants it: from its start to its end, as `python -m cProfile` does.
"""

from __future__ import annotations

import atexit
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cProfile import Profile


def start(path: str) -> None:
    """Starts, until this process ends; the statistics are written to `path` then."""
    from cProfile import Profile

    profile = Profile()
    # The program's own functions for its end are registered later, and so run before.
    atexit.register(_end, profile, path, os.getpid())
    profile.enable()


def _end(profile: Profile, path: str, pid: int) -> None:
    profile.disable()
    if pid != os.getpid():
        return  # a forked child: the statistics are its parent's
    try:
        profile.dump_stats(path)
    except OSError as error:
        sys.stderr.write(f"queryprof: the functions' times are lost: {error}\n")
