"""Measure the page of a large trace: its size, the time to write it, and its speed in a browser.

The trace has 5,000 statements, each executed from 20 of 10,000 call paths. Needs playwright and
chromium.

    python benchmarks/pages.py [--statements 5000] [--pairs 100000]
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
from playwright.sync_api import sync_playwright

from queryprof.trace.store import TraceStore
from queryprof.trace.tables import TABLE

PATHS = 10_000
LOADS = 5

MEASURE = """() => {
    const took = (act) => { const from = performance.now(); act(); document.body.offsetHeight;
                            return performance.now() - from; };
    const search = document.getElementById("search");
    const type = (text) => took(() => { search.value = text; search.dispatchEvent(new Event("input")); });
    return { sort: took(() => document.querySelectorAll("th button")[3].click()),
             "first search": type("t12"), search: type("t123"), all: type(""),
             "statement page": took(() => { location.hash = "#/s/7";
                                            dispatchEvent(new HashChangeEvent("hashchange")); }) };
}"""


def rows_of(table: str, **values: object) -> tuple[object, ...]:
    """Return a row. Missing values are 0 or empty."""
    empty = {"TEXT": "", "REAL": 0.0, "INTEGER": 0}
    return tuple(
        values.get(c.name, None if c.is_optional else empty[c.sql_type])
        for c in TABLE[table].columns
    )


def make_trace(path: str, statements: int, pairs: int) -> None:
    """Write a trace whose times are Pareto-distributed."""
    draw, store = random.Random(1), TraceStore(path)
    with store.transaction():
        (number,) = store.add(
            "process",
            [
                rows_of(
                    "process",
                    pid=10,
                    argv='["python", "app.py"]',
                    directory="/srv/app",
                    clean_end=1,
                    start_unix_ns=10**18,
                    end_unix_ns=10**18 + 3600 * 10**9,
                    call_cost_ns=100.0,
                )
            ],
        )
        texts = [
            f"SELECT a{n}, b FROM t{n % 300} WHERE c{n} = ? ORDER BY e" for n in range(statements)
        ]
        asked = store.add("statement", [(text, None) for text in texts])
        frames = store.add(
            "frame",
            [
                (
                    f"Class{n % 997}.method_{n}",
                    f"/srv/app/module_{n % 400}.py",
                    n % 2000 + 1,
                    "user",
                    0,
                )
                for n in range(PATHS)
            ],
        )
        stacks = store.add(
            "stack",
            [
                (f"{frame},{draw.choice(frames)},{frames[n % 500]}",)
                for n, frame in enumerate(frames)
            ],
        )
        (span,), (thread,) = (
            store.add("span", [("",)]),
            store.add("thread", [(number, "MainThread")]),
        )
        aggregates, counts = [], []
        for n in range(pairs):
            runs = int(draw.paretovariate(1.0)) % 100_000 + 1
            ns = runs * draw.randrange(3000, 300_000)
            counts.append(runs)
            aggregates.append(
                rows_of(
                    "aggregate",
                    statement_id=asked[n % statements],
                    path_id=draw.choice(stacks),
                    span_id=span,
                    thread_id=thread,
                    operation="execute",
                    count=runs,
                    rows=3 * runs,
                    total_ns=ns,
                    self_ns=ns,
                    min_ns=ns // runs,
                    max_ns=ns // runs,
                    execution_max_ns=ns // runs,
                    counted=runs,
                    vm_steps=30 * runs,
                )
            )
        numbers = store.add("aggregate", aggregates)
        store.add("histogram", [(n, 150, runs) for n, runs in zip(numbers, counts, strict=True)])
    store.close()


def in_browser(page: Path) -> dict[str, Any]:
    """Return times (ms) and sizes. The load time is the shortest of several."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium-headless-shell") or shutil.which("chromium"),
            args=["--no-sandbox"],
        )
        ready = []
        for _ in range(LOADS):
            tab = browser.new_page(viewport={"width": 1280, "height": 900})
            tab.goto(page.as_uri())
            tab.wait_for_selector("html[data-ready]")
            ready.append(int(tab.evaluate("document.documentElement.dataset.ready")))
        elements = tab.evaluate("document.querySelectorAll('*').length")
        found = {"ready": min(ready), "elements": elements, **tab.evaluate(MEASURE)}
        browser.close()
    return found


@click.command()
@click.option("--statements", default=5000, show_default=True)
@click.option("--pairs", default=100_000, show_default=True, help="Of a statement and a call path.")
def main(statements: int, pairs: int) -> None:
    """Print the figures of one page."""
    with tempfile.TemporaryDirectory() as folder:
        trace, page = f"{folder}/bench.qprof", Path(folder, "bench.html")
        make_trace(trace, statements, pairs)
        command = [
            sys.executable,
            "-c",
            "from queryprof.cli.main import main; main()",
            "html",
            trace,
        ]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"trace {os.path.getsize(trace) / 1e6:.1f} MB, page {page.stat().st_size / 1e6:.2f} MB"
        )
        print(
            f"written in {used.ru_utime + used.ru_stime:.1f} s CPU, {used.ru_maxrss / 1e3:.0f} MB"
        )
        for name, value in in_browser(page).items():
            print(f"{name:<15} {value:,.0f}{'' if name == 'elements' else ' ms'}")


if __name__ == "__main__":
    main()
