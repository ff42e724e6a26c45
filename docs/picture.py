"""Write docs/report.svg, the picture in README: the command's terminal output for a real run.

make picture
"""

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS = 104
QUERYPROF = Path(sys.executable).with_name("queryprof")
UP_TO = "See also: "


def main(trace: str) -> None:
    colours = {**os.environ, "FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    colours.pop("NO_COLOR", None)
    command = [QUERYPROF, "report", trace, "--top", "3"]
    printed = subprocess.run(command, env=colours, capture_output=True, text=True, check=True)
    console = Console(record=True, width=COLUMNS, file=StringIO())
    lines = printed.stdout.splitlines()
    shown = lines[: next(number for number, line in enumerate(lines) if UP_TO in line)]
    console.print(Text.from_ansi("\n".join(shown).rstrip()))
    title = "queryprof run app.py"
    Path(__file__).with_name("report.svg").write_text(console.export_svg(title=title) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
