"""Options and messages of commands that prove a fix on a copy of the database."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from queryprof.cli.amounts import duration
from queryprof.errors import ProofError, QueryprofError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from queryprof.analysis.report import Report
    from queryprof.findings.finding import Finding
    from queryprof.model.advice import Advice

NEEDED = ("apsw", "sqlglot")

PROVE = click.option(
    "--prove", "proves", is_flag=True, help="Try each fix on a copy of --db, and measure it."
)
BUDGET_S = 60.0


def proving_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the parameters `proves`, `budget_s` and `interpreter` to a command."""
    for option in (
        click.option(
            "--python",
            "interpreter",
            type=click.Path(),
            help="Python to measure with; it should have your program's SQLite version.  [default:"
            " this one]",
        ),
        click.option(
            "--budget",
            "budget_s",
            type=duration(1),
            default=f"{BUDGET_S:g}s",
            show_default=True,
            help="Time limit of --prove.",
        ),
        PROVE,
    ):
        command = option(command)
    return command


def check_proving(proves: bool, databases: Sequence[str]) -> None:
    """Raise UsageError if --prove is given without exactly one database."""
    if proves and len(databases) != 1:
        raise click.UsageError("--prove needs one --db, the program's database")


def prove_advice(
    report: Report,
    findings: Sequence[Finding],
    databases: Sequence[str],
    budget_s: float,
    interpreter: str | None,
) -> Advice:
    """Return measured advice. Raises ProofError, and QueryprofError if APSW is missing."""
    try:
        from queryprof.proof.prove import prove
    except ModuleNotFoundError as error:
        if error.name not in NEEDED:
            raise
        raise QueryprofError(
            f"--prove needs {error.name}: pip install {' '.join(NEEDED)}"
        ) from error
    from queryprof.planner.judging import OutOfTime, StatementError

    try:
        return prove(report, databases[0], budget_s, interpreter or sys.executable, findings)
    except StatementError as error:  # a statement that queryprof itself executes
        raise ProofError(
            f"{databases[0]}: queryprof cannot measure statements on a copy of this database:"
            f" {error}"
        ) from error
    except OutOfTime as error:
        raise ProofError(
            f"--budget {budget_s:g}s: no time was left to measure anything; allow more"
        ) from error
