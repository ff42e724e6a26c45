"""The fleet's questions: SQL texts that run in both DuckDB and Apache Spark."""

from __future__ import annotations

import re
from importlib.resources import files as resources

PARAMETER = re.compile(r"\$([a-z_0-9]+)")
"""Parameters in the questions, which are part of queryprof."""

SLOWER, FASTER, MORE_STEPS = 1.05, 0.95, 1.5
"""Ratios beyond which a version is slower or faster than another, or takes more VM steps."""

DEFAULTS = {"slower": SLOWER, "faster": FASTER, "more_steps": MORE_STEPS, "by": "few", "top": 0}
"""Default values of parameters."""


def question_sql(name: str) -> str:
    """Return the text of a question."""
    return resources("queryprof.fleet").joinpath("questions", f"{name}.sql").read_text("utf-8")
