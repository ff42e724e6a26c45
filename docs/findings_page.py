"""Writes docs/findings.md: each category with a program that has the fault, what `queryprof
analyze` says of it, and what to do. Run by `make docs`. A section of which only measured times
are new stays as it is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from queryprof.analysis.findings.finding import CATEGORIES, OF_SERVERS

ROOT = Path(__file__).parent.parent
PROGRAMS = ROOT / "tests" / "programs" / "findings"
COMMAND = Path(sys.executable).with_name("queryprof")

HEAD = """# Findings: why it is slow, and what to do

`queryprof analyze` reads a trace and names the reasons:

```console
$ queryprof run --no-report -o app.qprof examples/airports/app.py
$ queryprof analyze app.qprof
$ queryprof analyze app.qprof --format sarif --fail-on none
```

The report of `queryprof run` and `queryprof report` begins with the first three. One cause is one
finding. The most severe come first, and of these those that can win most.

**What a fix can win** is the driver's time. Where your code calls an object mapper, it is the time of your line, with everything
that the line calls (see [measuring](measuring.md#the-time-of-your-line)). "At least" means that this time was not measured.

**Severity** is the gain's share of the run: high from 10% or 100 ms per request (span), medium from 2%. A finding that is "not sure" is
high from 50%, medium from 20% or 100 ms per request. Without requests, a gain below 100 ms is low. A gain below 0.5% and below 1 ms,
or below 0.1%, is not a finding. Some are medium or low at the most, as their gain is an estimate. Where there are spans, shares are of their time, unless they overlap so much that the run is shorter.
What no request waits for is a part of the run. A program that waits most of the time for something else has shares of the time in
which it ran.

**The schema** of a database is read for some of them (`index_defeated`, `bad_index_choice`,
`redundant_index`, `stale_statistics`): from the files that the trace names, as long as they are there, or from
`--db FILE`. They are opened read-only. Of a database in memory, and of one that is gone, the statements that created its
tables in the recording are the schema.

**PostgreSQL's plans** are requested with [`--dsn`](postgresql.md), which finds `full_scan` and `bad_estimate` there.

**SQL** is shown when SQLite takes it: the schema is created once more, without rows, in a process of its own; what is
proposed is created there, and the statement's plan must then be a better one. Where the schema is not known, or the plan
there is another than the program had, no SQL is shown. What the program itself prints at the end of a
`queryprof.profile()` block has none, as no process is started there.

**Migrations**: for a statement of Django or SQLAlchemy an index is also shown as `models.Index(...)`, or as Alembic's
`op.create_index(...)`. An index on an expression is `migrations.RunSQL(...)` or `op.execute(...)`.

 With `--prove` indexes are built and measured on a copy: see [proving a fix](proving.md).

**Exit status**: 0; with `--fail-on high`, `medium` or `any` 1 when there is one so severe; 2 for a trace
that cannot be read, or in which nothing was recorded.

**Formats**: `--format table`, `json` (schema: `queryprof report --schema findings`), `markdown`,
`github` (annotations of a pull request) `sarif` (2.1.0, for code scanning) and, with `--prove`, `sql`.

**Accepting one**: a finding's last line is its identity, which stays the same while the statement, the
file's name and the function do. In `queryprof.toml`, or in `[tool.queryprof]` of `pyproject.toml`:

```toml
accepted = [{ finding = "full_scan-1a2b3c4d", reason = "a table of 200 rows" }]
```

An entry that is no finding any more is named in the output.

"""


def output_of(name: str, folder: str) -> str:
    """What analyze says of the program's finding; "": Python 3.11 does not find it."""
    program = Path(folder, f"{name}.py")
    program.write_text((PROGRAMS / f"{name}.py").read_text())
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "98"}
    for arguments in (
        ["run", "--no-report", "-o", f"{name}.qprof", program.name],
        ["analyze", f"{name}.qprof", "--top", "9"],
    ):
        done = subprocess.run(
            [COMMAND, *arguments],
            cwd=folder,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
    for block in re.split(r"(?m)^  \d+  ", done.stdout)[1:]:
        finding = block.partition("\n\n")[0]
        if f"     {name}-" in finding:
            return f"  1  {finding}".rstrip()
    return ""


def without_figures(section: str) -> str:
    """A section's text without what differs from run to run."""
    return re.sub(r"[\d.,]+ ?(?:ns|µs|ms|s|%)?", "0", " ".join(section.split()))


def main() -> None:
    page = ROOT / "docs" / "findings.md"
    former = {without_figures(one): one for one in re.split("(?m)^(?=## )", page.read_text())[1:]}
    known = {one.split("`")[1]: one for one in former.values()}
    parts = [HEAD]
    with tempfile.TemporaryDirectory() as folder:
        for name, category in CATEGORIES.items():
            if name in OF_SERVERS:
                continue
            program = (PROGRAMS / f"{name}.py").read_text().replace("  # culprit", "")
            output = output_of(name, folder)
            section = (
                f"## `{name}`\n\n**{category.title}**: {category.meaning[0].lower()}{category.meaning[1:]}\n\n```python\n{program}```\n\n"
                f"```text\n{output}\n```\n\n"
            )
            parts.append(former.get(without_figures(section), section) if output else known[name])
    page.write_text("".join(parts).rstrip("\n") + "\n")


if __name__ == "__main__":
    main()
