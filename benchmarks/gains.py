"""What findings say that a fix wins, beside what it wins.

Each program has a slow way, and a way after the fix that its finding proposes. Both run bare, and
the slow way is recorded, each in a process of its own, by turns. A turn has one ratio: the gain of
the first finding over the difference of the two ways. The median of the turns' ratios counts, as a
machine is slower in some turns than in others.

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
        wins, gains, ratios = [], [], []
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(TURNS):
                before_ns = took_ns(program, "before")
                gain_ns, category = said(program, folder)
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
    least = min(LEAST_GOOD, len(programs))
    sys.exit(good < least)


if __name__ == "__main__":
    main()
