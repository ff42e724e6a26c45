"""Compare the savings that findings predict with the savings of their fixes.

Each program has a slow version, and a version with the fix that its finding proposes. In each round
both run bare, and the slow one is recorded, in separate processes. The round's ratio is the saving
of the first finding, divided by the difference of the two versions. The median of the ratios
counts, because the machine is slower in some rounds than in others.

The docstring of each program has its fault and, after the colon, the fix.

    python benchmarks/gains.py [program ...]
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = Path(__file__).with_name("gains")
QUERYPROF = Path(sys.executable).with_name("queryprof")

TURNS = 5
FACTOR = 1.5
"""Largest accepted factor between the predicted and the real saving."""

MIN_GOOD_PROGRAMS = 25
"""Minimum number of programs within the factor."""


def took_ns(program: Path, way: str) -> int:
    done = subprocess.run(
        [sys.executable, program, way], check=True, capture_output=True, text=True
    )
    return int(done.stdout.split()[-1])


def gain_of_first_finding(program: Path, folder: str) -> tuple[int, str]:
    """Return the saving and the category of the first finding."""
    trace = f"{folder}/x.qprof"
    subprocess.run(
        [QUERYPROF, "run", "--no-report", "-o", trace, program, "before"],
        check=True,
        capture_output=True,
    )
    done = subprocess.run(
        [QUERYPROF, "analyze", trace, "--format", "json"],
        check=True,
        capture_output=True,
        text=True,
    )
    Path(trace).unlink()
    found = json.loads(done.stdout)["findings"]
    return (found[0]["gain_ns"], found[0]["category"]) if found else (0, "(none)")


def main() -> None:
    chosen = [PROGRAMS / f"{name}.py" for name in sys.argv[1:]]
    programs = chosen or sorted(PROGRAMS.glob("*.py"))
    good = 0
    print(f"{'':22}{'wins':>10}{'said':>10}{'ratio':>7}  finding")
    for program in programs:
        wins, gains, ratios = [], [], []
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(TURNS):
                before_ns = took_ns(program, "before")
                gain_ns, category = gain_of_first_finding(program, folder)
                wins.append(before_ns - took_ns(program, "after"))
                gains.append(gain_ns)
                ratios.append(gain_ns / wins[-1] if wins[-1] > 0 else 0.0)
        wins_ns, said_ns, ratio = map(statistics.median, (wins, gains, ratios))
        good += 1 / FACTOR <= ratio <= FACTOR
        print(
            f"{program.stem:22}{wins_ns / 1e6:>7.1f} ms{said_ns / 1e6:>7.1f} ms{ratio:>7.2f}"
            f"  {category}",
            flush=True,
        )
    print(f"{good} of {len(programs)} within a factor of {FACTOR}")
    least = min(MIN_GOOD_PROGRAMS, len(programs))
    sys.exit(good < least)


if __name__ == "__main__":
    main()
