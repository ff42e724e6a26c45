"""Runs one of a program's two ways, chosen by the first argument, and prints how long it took."""

import gc
import sys
import time
from collections.abc import Callable


def run(before: Callable[[], object], after: Callable[[], object]) -> None:
    way = after if sys.argv[1:] == ["after"] else before
    gc.collect()
    gc.freeze()  # a collection of what the program has filled would belong to neither
    start_ns = time.perf_counter_ns()
    way()
    print(time.perf_counter_ns() - start_ns)
