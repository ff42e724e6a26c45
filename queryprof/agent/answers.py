"""The answers of the tools: plain data of a bounded size, computed from traces.

Nothing here is written or executed but what `prove` measures on a copy of a database, as the
command does. Paths are of one directory: what leads out of it is refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from queryprof.analysis.comparison import compare, regressions
from queryprof.analysis.comparison_result import StatementChange
from queryprof.analysis.findings.finding import Finding
from queryprof.analysis.findings.groups import unknown_causes
from queryprof.analysis.plans import plans_by_statement
from queryprof.analysis.report import Report
from queryprof.collect.reader import read_profile
from queryprof.errors import ProofError, QueryprofError
from queryprof.findings import findings_of
from queryprof.program.sources import Sources
from queryprof.report.findings.brief import briefs, shortened
from queryprof.report.findings.text import details, nothing_found
from queryprof.report.places import Places
from queryprof.report.text.cards import in_a_line
from queryprof.report.text.comparison import described, title, where
from queryprof.report.text.plans import marked_steps

MOST_FINDINGS, MOST_STATEMENTS, MOST_LINES = 20, 10, 40
LONGEST_LINE = 300

Answer = Mapping[str, Any]


class Answers:
    """The answers about traces in a directory.

    Args:
        directory: what paths are relative to, and must stay in.
    """

    def __init__(self, directory: str) -> None:
        self.directory = os.path.realpath(directory)

    def path_of(self, given: str) -> str:
        """A path inside the directory.

        Raises:
            QueryprofError: it leads out of it.
        """
        path = os.path.realpath(os.path.join(self.directory, given))
        if os.path.commonpath((path, self.directory)) != self.directory:
            raise QueryprofError(f"{given}: is not in {self.directory}")
        return path

    def findings(self, trace: str) -> Answer:
        """What to change, that which can win most first."""
        report, found = self._read(trace)
        unknown = tuple(unknown_causes(report))
        answer: dict[str, Any] = {
            "summary": in_a_line(report.overview),
            "findings": briefs(found[:MOST_FINDINGS], Places(report.profile)),
            "cautions": [shortened(one, LONGEST_LINE) for one in report.overview.cautions],
            "not_known": [shortened(one, LONGEST_LINE) for one in unknown],
        }
        if len(found) > MOST_FINDINGS:
            answer["left_out"] = len(found) - MOST_FINDINGS
        if not found:
            answer["summary"] += f". {nothing_found(unknown)}"
        return answer

    def finding(self, trace: str, identity: str) -> Answer:
        """One finding whole: its evidence, the source around its line, the plan."""
        report, found = self._read(trace)
        finding = self._named(found, identity)
        sources, frame = Sources(report.profile.sources), finding.site.frame
        around = sources.lines_around(frame) if frame else None
        (short,) = briefs([finding], Places(report.profile))
        return {
            **short,
            "details": [shortened(text, 1000) for _, text in details(finding)][:MOST_LINES],
            "file": frame.file if frame else "",
            "line": frame.line if frame else 0,
            "source": [f"{number}  {line}" for number, line in around or ()],
            "plan": self._plan(report, finding.statement),
        }

    def plan(self, trace: str, statement: str) -> Answer:
        """The query plans of a statement, as it is named in findings or as its beginning."""
        report, _ = self._read(trace)
        known = plans_by_statement(report.profile.plans)
        whole = statement.removesuffix("...")
        chosen = next((one for one in known if one == statement or one.startswith(whole)), None)
        if chosen is None:
            raise QueryprofError("the plan of no statement that begins so is known")
        return {
            "statement": shortened(chosen, 2000),
            "plan": self._plan(report, chosen),
        }

    def prove(self, trace: str, database: str, budget_s: float) -> Answer:
        """What the findings' changes win, measured on a copy of the database."""
        from queryprof.proof.judging import OutOfTime, StatementError
        from queryprof.proof.prove import prove
        from queryprof.report.text.advice import cautions, change_in_words, summary

        report, found = self._read(trace)
        path = self.path_of(database)
        try:
            advice = prove(report, path, budget_s, sys.executable, found)
        except StatementError as error:
            raise ProofError(f"{database}: its copy cannot be measured: {error}") from error
        except OutOfTime as error:
            raise ProofError(f"nothing was measured in {budget_s:g} s: give it more") from error
        return {
            "summary": summary(advice),
            "changes": [
                {"sql": shortened(one.sql, 500), "result": change_in_words(one, advice)}
                for one in advice.changes[:MOST_STATEMENTS]
            ],
            "cautions": [shortened(one, LONGEST_LINE) for one in cautions(advice)][:MOST_LINES],
        }

    def compare(self, before: str, after: str) -> Answer:
        """What got worse or better between two traces."""
        profiles = [read_profile(self.path_of(one)) for one in (before, after)]
        found = compare(profiles[:1], profiles[1:])
        places = Places(*profiles)
        worse = regressions(found, ("counts", "plans", "vmsteps"))
        return {
            "is_worse": bool(worse),
            "whole": [f"{title(one)} {described(one)}" for one in found.whole if one.ratio],
            "worse": [
                {
                    "what": shortened(title(one), 400),
                    "how": shortened(described(one), LONGEST_LINE),
                    "place": where(one, places) if isinstance(one, StatementChange) else "",
                }
                for one in worse[:MOST_STATEMENTS]
            ],
            "left_out": max(0, len(worse) - MOST_STATEMENTS),
        }

    def locks(self, database: str) -> Answer:
        """Which processes hold a lock of a database file now."""
        from queryprof.program.lock_owners import owners_of

        path = self.path_of(database)
        if not os.path.isfile(path):
            raise QueryprofError(f"{database}: there is no such file")
        return {
            "locks": [
                {"process": one.pid, "does": one.does, "command": list(one.command)[:MOST_LINES]}
                for one in owners_of(path)[:MOST_LINES]
            ]
        }

    def _read(self, trace: str) -> tuple[Report, tuple[Finding, ...]]:
        path = self.path_of(trace)
        stamp = os.stat(path).st_mtime_ns if os.path.exists(path) else 0
        return _read(path, stamp)

    @staticmethod
    def _named(found: tuple[Finding, ...], identity: str) -> Finding:
        for one in found:
            if one.identity == identity:
                return one
        raise QueryprofError("there is no finding of this identity: `findings` has them")

    @staticmethod
    def _plan(report: Report, statement: str) -> list[str]:
        plans = plans_by_statement(report.profile.plans).get(statement, ())
        steps = [f"{step}  ! {sign}" if sign else step for step, sign in marked_steps(plans, None)]
        return [shortened(step, LONGEST_LINE) for step in steps[:MOST_LINES]]


@lru_cache(maxsize=4)
def _read(path: str, _changed_ns: int) -> tuple[Report, tuple[Finding, ...]]:
    report = Report(read_profile(path))
    return report, findings_of(report)
