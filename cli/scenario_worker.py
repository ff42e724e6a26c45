"""One process of a scenario. It calls each function at its scheduled time, in a span.

Two pipes control it. The process writes a byte to the first pipe when all modules are imported, and
reads the start time of the scenario from the second pipe.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from operator import attrgetter

from queryprof.core.span import span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

EXIT_NOT_FOUND = 3
"""Exit status if a module or function of the scenario cannot be imported."""


def _import_function(call: str) -> Callable[..., Any]:
    module, _, name = call.partition(":")
    function: Callable[..., Any] = attrgetter(name)(importlib.import_module(module))
    if not callable(function):
        raise TypeError(f"{call}: cannot be called")
    return function


def main() -> None:
    """Make the calls given on the command line as JSON: [[seconds, call, arguments], ...]."""
    group, ready, go, text = sys.argv[1:]
    sys.argv[1:] = []
    sys.path.insert(0, os.getcwd())
    try:
        lines = [
            (at_s, call, _import_function(call), args) for at_s, call, args in json.loads(text)
        ]
    except (ImportError, AttributeError, TypeError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(EXIT_NOT_FOUND)
    os.write(int(ready), b".")
    start_s = float(os.read(int(go), 100))  # on the monotonic clock, which all processes share
    for at_s, call, function, arguments in lines:
        time.sleep(max(0.0, start_s + at_s - time.monotonic()))
        with span(f"{group} {call}"):
            function(*arguments)


if __name__ == "__main__":
    main()
