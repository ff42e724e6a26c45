"""Write docs/findings.md, with a faulty program for each category of findings.

Each section has the output of `queryprof analyze` and the fix. `make docs` runs this. A section
does not change if only measured times differ.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from queryprof.findings.finding import CATEGORIES, SERVER_CATEGORIES

ROOT = Path(__file__).parent.parent
PROGRAMS = ROOT / "tests" / "programs" / "findings"
COMMAND = Path(sys.executable).with_name("queryprof")

HEAD = """# Findings: why it is slow, and what to do

`queryprof analyze` reads a trace and lists the causes of slow queries, each with its fix:

```console
$ queryprof run --no-report -o app.qprof examples/airports/app.py
$ queryprof analyze app.qprof
$ queryprof analyze app.qprof --format sarif --fail-on none
```

The report of `queryprof run` and `queryprof report` begins with the first three. Each cause appears once, most severe first. The rest of this
page has a program for each kind of finding.

| to | use |
|---|---|
| fail a build | `--fail-on high`, `medium` or `any`: the exit status is 1 if there is a finding of this severity or higher |
| build the indexes on a copy and measure them | `--prove`: see [proving a fix](proving.md) |
| find `full_scan` and `bad_estimate` on PostgreSQL | [`--dsn`](postgresql.md) |
| choose the format | `--format table`, `brief`, `json` (schema: `queryprof report --schema findings`), `markdown`, `github` (annotations of a pull request), `sarif` (2.1.0, for code scanning), or `sql` with `--prove` |

## Severity and savings

The saving is driver time. If your code calls an object mapper, it is the time of your line, with everything that the line calls (see
[measuring](measuring.md#the-time-of-your-line)). "At least" means that this time was not measured.

| severity | saving as share of the run | if queryprof is "not sure" |
|---|---|---|
| high | 10% or more, or 100 ms per request (span) | 50% or more |
| medium | 2% or more | 20% or more, or 100 ms per request |
| low | less | less |

- A saving below 0.1%, or below both 0.5% and 1 ms, is not reported.
- Without requests, a saving below 100 ms is low. Findings of some kinds are at most medium or low,
  because it is unknown how much a fix saves.
- If a query runs in a background thread while the main thread computes, a fix cannot save the main thread's CPU time.
  The saving is limited to the rest of the run, and the finding is at most medium.
- Shares refer to the total time of the spans, if the trace has spans and this time is shorter than the run. For a query
  outside of spans, the share refers to the run.
- Processes that run a query at the same time also save its time at the same time, so the saving is not their sum.
  Writes to SQLite wait for each other, and add up.
- In a server without spans, and in a program that mostly waits for something else, shares refer to the program's
  [busy time](glossary.md).

## Accept a finding

The last line of a finding is its identity. It stays the same as long as the statement, the file name and the function do. To
accept a finding, put its identity into `queryprof.toml`, or into `[tool.queryprof]` of `pyproject.toml`:

```toml
accepted = [{ finding = "full_scan-1a2b3c4d", reason = "a table of 200 rows" }]
```

Entries that no longer match a finding are listed at the end.

## Proposed SQL

queryprof shows SQL only if it improves the plan. To check this, it creates the index on an empty copy of the schema, in a
separate process. You see no SQL if the schema is unknown, if the plan differs from your program's, or at the end of a
`queryprof.profile()` block, which starts no process.

The schema comes from `--db FILE`, or from the databases that the trace names. They are opened read-only. If a database was in memory or no longer
exists, queryprof uses the recorded CREATE statements. `index_defeated`, `bad_index_choice`, `redundant_index` and `stale_statistics` need the
schema.

For statements of Django or SQLAlchemy you also get a migration: `models.Index(...)` or Alembic's `op.create_index(...)`. For an index on an
expression, it is `migrations.RunSQL(...)` or `op.execute(...)`.

"""


def output_of(name: str, folder: str) -> str:
    """Return the output of analyze for a program's finding; "" if this Python does not find it."""
    program = Path(folder, f"{name}.py")
    program.write_text((PROGRAMS / f"{name}.py").read_text())
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "98"}
    for arguments in (
        ["run", "--no-report", "-o", f"{name}.qprof", program.name],
        ["analyze", f"{name}.qprof"],
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
    """Return a section's text without the parts that differ from run to run."""
    return re.sub(r"[\d.,]+ ?(?:ns|µs|ms|s|%)?", "0", " ".join(section.split()))


def _lower_first(sentence: str) -> str:
    """Return the sentence as it continues a line. Names such as SQLite keep their capitals."""
    return sentence if sentence[1].isupper() else sentence[0].lower() + sentence[1:]


def main() -> None:
    page = ROOT / "docs" / "findings.md"
    former = {without_figures(one): one for one in re.split("(?m)^(?=## `)", page.read_text())[1:]}
    known = {one.split("`")[1]: one for one in former.values()}
    parts = [HEAD]
    with tempfile.TemporaryDirectory() as folder:
        for name, category in CATEGORIES.items():
            if name in SERVER_CATEGORIES:
                continue
            program = (PROGRAMS / f"{name}.py").read_text().replace("  # culprit", "")
            output = output_of(name, folder)
            section = (
                f"## `{name}`\n\n**{category.title}**: {_lower_first(category.meaning)}\n\n```python\n{program}```\n\n"
                f"```text\n{output}\n```\n\n"
            )
            parts.append(former.get(without_figures(section), section) if output else known[name])
    page.write_text("".join(parts).rstrip("\n") + "\n")


if __name__ == "__main__":
    main()
