"""Answers of the MCP tools: plain data of limited size, computed from traces.

A trace is read only as the content of its file. Databases and source files that the trace names are
read only inside the directory. Nothing is written or executed, except that `prove` measures on a
copy of a database, like `queryprof analyze --prove`.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from queryprof.analysis.baseline_rules import RegressionRules
from queryprof.analysis.plans import plans_by_statement
from queryprof.analysis.report import Report
from queryprof.collect.reader import profile_from_content
from queryprof.comparing.comparison import compare, regressions
from queryprof.comparing.comparison_result import MetricChange, StatementChange, Verdict
from queryprof.core import _core
from queryprof.core.absence import absence_reason
from queryprof.errors import ProofError, QueryprofError
from queryprof.findings.finding import Finding
from queryprof.findings.lookup import findings_of
from queryprof.findings.proved import statements_with_plan_findings
from queryprof.findings.unknown_causes import unknown_data_notes
from queryprof.given_file import UNDISTURBED
from queryprof.program.sources import Sources
from queryprof.recorder.autoload import program_named_in
from queryprof.report.findings.brief import brief_findings, shorten_fields, shorten_text
from queryprof.report.findings.text import detail_lines, no_findings_sentence
from queryprof.report.places import Places
from queryprof.report.text.cards import one_line_summary
from queryprof.report.text.comparison import change_line, changed_thing, most_changed_site
from queryprof.report.text.comparison import verdict_cautions as cautions_of
from queryprof.report.text.plans import marked_steps

MAX_FINDINGS, MAX_STATEMENTS, MAX_LINES = 20, 10, 40
MAX_LINE_CHARACTERS = 300
MAX_CHARACTERS = 16_000
"""Length limit of a complete finding as JSON."""

MAX_CACHED_TRACES = 4
MAX_BYTES = 1 << 30
MIN_BUDGET_S, MAX_BUDGET_S = 1, 3600

if TYPE_CHECKING:
    from queryprof.model import Profile

Answer = Mapping[str, Any]


class TraceAnswers:
    """Answers about traces in a directory.

    Args:
        directory: paths are relative to it, and must stay in it.
    """

    def __init__(self, directory: str) -> None:
        self.directory = os.path.realpath(directory)
        self._known: dict[str, Report] = {}  # reports by the hash of the trace's content

    def path_of(self, given: str) -> str:
        """Return a path inside the directory.

        Raises:
            QueryprofError: the path leads outside.
        """
        path = os.path.realpath(os.path.join(self.directory, given))
        if not self._is_inside(path):
            raise QueryprofError(
                f"{shorten_text(given, MAX_LINE_CHARACTERS)}: not in {self.directory}"
            )
        return path

    def _is_inside(self, path: str) -> bool:
        return os.path.commonpath((os.path.realpath(path), self.directory)) == self.directory

    def _read_content(self, given: str) -> bytes:
        """Return the content of a file in the directory, even if the path is replaced during the
        check.
        """
        name = shorten_text(given, MAX_LINE_CHARACTERS)
        try:
            file = os.open(self.path_of(given), UNDISTURBED | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError:
            raise QueryprofError(f"{name}: no such trace") from None
        with open(file, "rb") as opened:
            found, real = os.fstat(file), f"/proc/self/fd/{file}"
            if os.path.exists(real) and not self._is_inside(os.readlink(real)):
                raise QueryprofError(f"{name}: not in {self.directory}")
            if not stat.S_ISREG(found.st_mode):
                raise QueryprofError(f"{name}: not a regular file")
            if found.st_size > MAX_BYTES:
                raise QueryprofError(f"{name}: larger than {MAX_BYTES >> 20} MB")
            return opened.read(MAX_BYTES + 1)

    def findings(self, trace: str) -> Answer:
        """Return the findings, largest saving first."""
        report, found = self._read(trace)
        unknown = tuple(unknown_data_notes(report, statements_with_plan_findings(found)))
        answer: dict[str, Any] = {
            "summary": one_line_summary(report.overview),
            "findings": brief_findings(found[:MAX_FINDINGS], Places(report.profile)),
            "cautions": [
                shorten_text(one, MAX_LINE_CHARACTERS) for one in report.overview.cautions
            ],
            "not_known": [shorten_text(one, MAX_LINE_CHARACTERS) for one in unknown],
        }
        if len(found) > MAX_FINDINGS:
            answer["left_out"] = len(found) - MAX_FINDINGS
        if not found:
            answer["summary"] += f". {no_findings_sentence(unknown)}"
        return answer

    def finding(self, trace: str, identity: str) -> Answer:
        """Return a complete finding: evidence, source around its line, plan."""
        report, found = self._read(trace)
        finding = self._find_finding(found, identity)
        sources, frame = self._sources(report.profile), finding.site.frame
        around = sources.lines_around(frame) if frame else None
        (short,) = brief_findings([finding], Places(report.profile))
        whole = {
            **short,
            "details": [shorten_text(text, 1000) for _, text in detail_lines(finding)][:MAX_LINES],
            "file": shorten_text(frame.file, MAX_LINE_CHARACTERS) if frame else "",
            "line": frame.line if frame else 0,
            "source": [shorten_text(f"{number}  {line}", 200) for number, line in around or ()],
            "plan": self._plan_lines(report, finding.statement),
        }
        return shorten_fields(whole, MAX_CHARACTERS)

    def plan(self, trace: str, statement: str) -> Answer:
        """Return the query plans of a statement.

        The statement is given as in the findings, as its beginning, or as in the program.
        """
        report, _ = self._read(trace)
        known = plans_by_statement(report.profile.plans).keys()
        whole = statement.removesuffix("...").strip()
        if not whole:
            raise QueryprofError("give a statement, or its beginning")
        begin_so = (one for one in known if one.startswith(whole))
        chosen = statement if statement in known else next(begin_so, None)
        if chosen is None and not absence_reason():  # the program's text, which contains values
            normal = _core.normal_form(statement)
            chosen = normal if normal in known else None
        if chosen is None:
            raise QueryprofError("no plan is known for a statement with this beginning")
        return {
            "statement": shorten_text(chosen, 2000),
            "plan": self._plan_lines(report, chosen),
        }

    def prove(self, trace: str, database: str, budget_s: float) -> Answer:
        """Return the savings of the proposed changes, measured on a copy of the database."""
        from queryprof.planner.judging import OutOfTime, StatementError
        from queryprof.proof.prove import prove
        from queryprof.report.text.advice import advice_cautions, change_in_words, saving_summary

        if not MIN_BUDGET_S <= budget_s <= MAX_BUDGET_S:
            raise QueryprofError(f"budget_s: must be {MIN_BUDGET_S} to {MAX_BUDGET_S} seconds")
        report, found = self._read(trace)
        path = self.path_of(database)
        try:
            advice = prove(report, path, budget_s, sys.executable, found)
        except StatementError as error:
            raise ProofError(f"{database}: its copy cannot be measured: {error}") from error
        except OutOfTime as error:
            raise ProofError(
                f"nothing was measured in {budget_s:g} s; allow more (budget_s)"
            ) from error
        return {
            "summary": saving_summary(advice),
            "changes": [
                {"sql": shorten_text(one.sql, 500), "result": change_in_words(one, advice)}
                for one in advice.changes[:MAX_STATEMENTS]
            ],
            "rewrites": [
                {
                    "statement": shorten_text(one.statement, 400),
                    "sql": shorten_text(one.sql, 400),
                    "how": shorten_text(one.how, MAX_LINE_CHARACTERS),
                }
                for one in advice.rewrites[:MAX_STATEMENTS]
            ],
            "not_measured": [
                {
                    "statement": shorten_text(one.statement, 200),
                    "reason": shorten_text(one.reason, MAX_LINE_CHARACTERS),
                }
                for one in advice.not_measured[:MAX_STATEMENTS]
            ],
            "not_measured_in_all": len(advice.not_measured),
            "outweighed": [
                shorten_text(one.sql, 400) for one in advice.outweighed[:MAX_STATEMENTS]
            ],
            "cautions": [shorten_text(one, MAX_LINE_CHARACTERS) for one in advice_cautions(advice)][
                :MAX_LINES
            ],
        }

    def compare(self, before: str, after: str) -> Answer:
        """Return the changes for the worse or better between two traces."""
        profiles = [profile_from_content(self._read_content(one), one) for one in (before, after)]
        found = compare(profiles[:1], profiles[1:])
        places = Places(*profiles)
        worse = regressions(found, RegressionRules().fail_on)
        better = [one for one in found.statements if one.verdict is Verdict.BETTER]

        def shown(one: StatementChange | MetricChange) -> Answer:
            place = most_changed_site(one, places) if isinstance(one, StatementChange) else ""
            return {
                "what": shorten_text(changed_thing(one), 300),
                "how": shorten_text(change_line(one), MAX_LINE_CHARACTERS),
                "place": shorten_text(place, 200),
            }

        return {
            "is_worse": bool(worse),
            "whole": [
                f"{changed_thing(one)} {change_line(one)} ({one.verdict})"
                for one in found.whole
                if one.ratio
            ],
            "worse": [shown(one) for one in worse[:MAX_STATEMENTS]],
            "better": [shown(one) for one in better[:MAX_STATEMENTS]],
            "left_out": sum(max(0, len(one) - MAX_STATEMENTS) for one in (worse, better)),
            "cautions": [shorten_text(one, MAX_LINE_CHARACTERS) for one in cautions_of(found)],
        }

    def locks(self, database: str) -> Answer:
        """Return which processes hold a lock on a database file, without their arguments."""
        from queryprof.program.kernel_locks import find_lock_owners

        path = self.path_of(database)
        if not os.path.isfile(path):
            raise QueryprofError(f"{shorten_text(database, MAX_LINE_CHARACTERS)}: no such file")
        return {
            "locks": [
                {
                    "process": one.pid,
                    "does": one.does,
                    "program": shorten_text(program_named_in(one.command), 100)
                    if one.command
                    else "",
                }
                for one in find_lock_owners(path)[:MAX_LINES]
            ]
        }

    def _read(self, trace: str) -> tuple[Report, tuple[Finding, ...]]:
        content = self._read_content(trace)
        digest = sha256(content, usedforsecurity=False).hexdigest()
        known = self._known.get(digest)
        if known is None:
            known = self._known[digest] = Report(
                profile_from_content(content, shorten_text(trace, MAX_LINE_CHARACTERS))
            )
            while len(self._known) > MAX_CACHED_TRACES:
                del self._known[next(iter(self._known))]
        # Findings depend on the current schema and sources.
        sources = self._sources(known.profile)
        return known, findings_of(known, sources=sources, may_read=self._is_inside)

    def _sources(self, profile: Profile) -> Sources:
        """Return the recorded source files that are inside the directory."""
        return Sources(
            {file: one for file, one in profile.sources.items() if self._is_inside(file)}
        )

    @staticmethod
    def _find_finding(found: tuple[Finding, ...], identity: str) -> Finding:
        for one in found:
            if one.identity == identity:
                return one
        raise QueryprofError("unknown finding; call `findings` for the list")

    @staticmethod
    def _plan_lines(report: Report, statement: str) -> list[str]:
        plans = plans_by_statement(report.profile.plans).get(statement, ())
        steps = [f"{step}  ! {sign}" if sign else step for step, sign in marked_steps(plans, None)]
        return [shorten_text(step, MAX_LINE_CHARACTERS) for step in steps[:MAX_LINES]]
