"""The fleet's questions: texts of SQL that DuckDB and Apache Spark read alike."""

from __future__ import annotations

import re
from importlib.resources import files as resources

PARAMETER = re.compile(r"\$([a-z_0-9]+)")
"""In the questions, which are ours."""

SLOWER, FASTER, MORE_STEPS = 1.05, 0.95, 1.5
"""What a version must be beyond, to be slower or faster than another, or to take more steps."""

DEFAULTS = {"slower": SLOWER, "faster": FASTER, "more_steps": MORE_STEPS, "by": "few", "top": 0}
"""Values of parameters that need not be given."""


def question(name: str) -> str:
    """The text of a question."""
    return resources("queryprof.fleet").joinpath("questions", f"{name}.sql").read_text("utf-8")
