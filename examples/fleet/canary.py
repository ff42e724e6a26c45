"""Run a fleet of 40 hosts, 8 with a new version, and compare: `queryprof fleet compare`.

Each host records in windows. `queryprof fleet ship` sends them to a directory. The deployment's
gate checks what became slower. The new version is worse, so the exit status is 1.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HOSTS, CANARIES = 40, 8
QUERYPROF = [sys.executable, "-m", "queryprof"]
SHOP = str(Path(__file__).with_name("shop.py"))


def run_host(number: int, traces: Path) -> None:
    version = "2" if number < CANARIES else "1"
    environment = {**os.environ, "QUERYPROF_SERVICE": "shop", "QUERYPROF_VERSION": version}
    trace = traces / f"host-{number}.qprof"
    command = [sys.executable, SHOP, f"web-{number}", version, str(trace)]
    subprocess.run(command, check=True, env=environment)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        traces, store = Path(folder, "traces"), Path(folder, "store")
        traces.mkdir()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda number: run_host(number, traces), range(HOSTS)))
        subprocess.run([*QUERYPROF, "fleet", "ship", "--once", "--to", store, traces], check=True)
        return subprocess.run(
            [*QUERYPROF, "fleet", "compare", "1", "2", store], check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
