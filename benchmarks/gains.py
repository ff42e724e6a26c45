"""What findings say that a fix wins, beside what it wins.

Each program has a slow way and the way after the fix that its finding proposes. Both run bare, each
in a process of its own, alternately; what the fix wins is the difference of the minima. The slow
way is recorded as often, and the finding that wins most is taken: the median of these.

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
"""How far a gain may be from what is won."""

LEAST_GOOD = 25
"""So many programs are within it at the least."""


def took_ns(program: Path, way: str) -> int:
    done = subprocess.run(
        [sys.executable, program, way], check=True, capture_output=True, text=True
    )
    return int(done.stdout.split()[-1])


def said(program: Path, folder: str) -> tuple[int, str]:
    """The gain and the category of the first finding."""
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
        before, after, gains = [], [], []
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(TURNS):
                before.append(took_ns(program, "before"))
                after.append(took_ns(program, "after"))
                gain_ns, category = said(program, folder)
                gains.append(gain_ns)
        wins_ns, said_ns = min(before) - min(after), statistics.median(gains)
        ratio = said_ns / wins_ns if wins_ns > 0 else 0.0
        good += 1 / FACTOR <= ratio <= FACTOR
        print(
            f"{program.stem:22}{wins_ns / 1e6:>7.1f} ms{said_ns / 1e6:>7.1f} ms{ratio:>7.2f} "
            f" {category}",
            flush=True,
        )
    print(f"{good} of {len(programs)} within a factor of {FACTOR}")
    least = min(LEAST_GOOD, len(programs))
    sys.exit(good < least)


if __name__ == "__main__":
    main()
