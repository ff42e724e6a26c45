"""queryprof's own cost: samples that the machine interrupts do not count for more."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

CORE = Path(__file__).parents[2] / "queryprof" / "core"
PROGRAM = """
#include "runtime/recording.c"

qp_clock_state qp_clock;
int64_t qp_clock_monotonic_ns(void) { return 0; }

int64_t own_ticks_of(const int64_t *parts, int count)
{
    qp_own_time_clear();
    for (int i = 0; i < count; i++) {
        qp_own_part part = {.own_ticks = qp_own_ticks};
        qp_own_part_end(&qp_own_ends, part, (uint64_t)parts[i]);
    }
    return qp_own_ticks;
}
"""
EACH = 61


@pytest.fixture(scope="module")
def own_ticks_of(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("own")
    (folder / "own.c").write_text(PROGRAM)
    command = ["cc", "-shared", "-fPIC", f"-I{CORE}", "-DNDEBUG", "-o", "own.so", "own.c"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "own.so"))
    library.own_ticks_of.restype = ctypes.c_int64
    return library


@pytest.mark.parametrize(
    ("parts", "ticks"),
    [
        ([], 0),
        ([100], 100),
        ([100] * 54, 5400),
        ([100] * 20 + [90_000_000] + [100] * 33, 5400),  # one is interrupted
        ([100, 90_000_000, *[100] * 52], 5400),
        ([100] * 20 + [200] * 34, 2 * 900 + 4 * 1800),  # from then on they take longer
    ],
)
def test_one_long_sample_stands_for_no_others(
    own_ticks_of: ctypes.CDLL, parts: list[int], ticks: int
) -> None:
    array = (ctypes.c_int64 * len(parts))(*parts)
    assert own_ticks_of.own_ticks_of(array, len(parts)) == EACH * ticks
