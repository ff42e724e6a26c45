"""Make a module of the benchmarks importable: the published searches, to compare with queryprof's
own.

This imports a single file, since the names of others are also names of tests.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

NAME = "worker_searches"
FILE = Path(__file__).parents[2] / "benchmarks" / f"{NAME}.py"

_spec = spec_from_file_location(NAME, FILE)
assert _spec is not None
assert _spec.loader is not None
sys.modules[NAME] = module_from_spec(_spec)
_spec.loader.exec_module(sys.modules[NAME])
