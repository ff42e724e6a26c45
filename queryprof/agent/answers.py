"""The answers of the tools: plain data of a bounded size, computed from traces.

A trace is read as the content of its file, and nothing beside it; databases and source files that
it names, inside the directory alone. Nothing is written or executed but what `prove` measures on a
copy of a database, as the command does.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from queryprof.analysis.baseline_rules import Rules
from queryprof.analysis.comparison import compare, regressions
from queryprof.analysis.comparison_result import Change, StatementChange, Verdict
from queryprof.analysis.findings.finding import Finding
from queryprof.analysis.findings.groups import unknown_causes
from queryprof.analysis.plans import plans_by_statement
from queryprof.analysis.report import Report
from queryprof.autoload import program_named_in
from queryprof.collect.reader import profile_in
from queryprof.core import _core
from queryprof.core.absence import absence
from queryprof.errors import ProofError, QueryprofError
from queryprof.findings import findings_of
from queryprof.given_file import UNDISTURBED
from queryprof.program.sources import Sources
from queryprof.report.findings.brief import bounded, briefs, shortened
from queryprof.report.findings.text import details, nothing_found
from queryprof.report.places import Places
from queryprof.report.text.cards import one_line_summary
from queryprof.report.text.comparison import cautions as cautions_of
from queryprof.report.text.comparison import change_text, title, where
from queryprof.report.text.plans import marked_steps

MOST_FINDINGS, MOST_STATEMENTS, MOST_LINES = 20, 10, 40
LONGEST_LINE = 300
MOST_CHARACTERS = 16_000
"""Of a finding that is shown whole, as JSON."""

TRACES_KEPT = 4
LARGEST_BYTES = 1 << 30
LEAST_BUDGET_S, MOST_BUDGET_S = 1, 3600

if TYPE_CHECKING:
    from queryprof.model import Profile

Answer = Mapping[str, Any]


class Answers:
    """The answers about traces in a directory.

    Args:
        directory: what paths are relative to, and must stay in.
    """

    def __init__(self, directory: str) -> None:
        self.directory = os.path.realpath(directory)
        self._known: dict[str, Report] = {}  # by their content

    def path_of(self, given: str) -> str:
        """A path inside the directory.

        Raises:
            QueryprofError: it leads out of it.
        """
        path = os.path.realpath(os.path.join(self.directory, given))
        if not self._has(path):
            raise QueryprofError(f"{shortened(given, LONGEST_LINE)}: is not in {self.directory}")
        return path

    def _has(self, path: str) -> bool:
        return os.path.commonpath((os.path.realpath(path), self.directory)) == self.directory

    def _content(self, given: str) -> bytes:
        """The content of a file in the directory, whatever is put in its place meanwhile."""
        name = shortened(given, LONGEST_LINE)
        try:
            file = os.open(self.path_of(given), UNDISTURBED | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError:
            raise QueryprofError(f"{name}: no such trace") from None
        with open(file, "rb") as opened:
            found, real = os.fstat(file), f"/proc/self/fd/{file}"
            if os.path.exists(real) and not self._has(os.readlink(real)):
                raise QueryprofError(f"{name}: is not in {self.directory}")
            if not stat.S_ISREG(found.st_mode):
                raise QueryprofError(f"{name}: is no file")
            if found.st_size > LARGEST_BYTES:
                raise QueryprofError(f"{name}: has more than {LARGEST_BYTES >> 20} MB")
            return opened.read(LARGEST_BYTES + 1)

    def findings(self, trace: str) -> Answer:
        """What to change, that which can win most first."""
        report, found = self._read(trace)
        unknown = tuple(unknown_causes(report))
        answer: dict[str, Any] = {
            "summary": one_line_summary(report.overview),
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
        sources, frame = self._sources(report.profile), finding.site.frame
        around = sources.lines_around(frame) if frame else None
        (short,) = briefs([finding], Places(report.profile))
        whole = {
            **short,
            "details": [shortened(text, 1000) for _, text in details(finding)][:MOST_LINES],
            "file": shortened(frame.file, LONGEST_LINE) if frame else "",
            "line": frame.line if frame else 0,
            "source": [shortened(f"{number}  {line}", 200) for number, line in around or ()],
            "plan": self._plan(report, finding.statement),
        }
        return bounded(whole, MOST_CHARACTERS)

    def plan(self, trace: str, statement: str) -> Answer:
        """The query plans of a statement, as it is named in findings, as its beginning, or as the
        program has it.
        """
        report, _ = self._read(trace)
        known = plans_by_statement(report.profile.plans).keys()
        whole = statement.removesuffix("...").strip()
        if not whole:
            raise QueryprofError("name a statement, or its beginning")
        begin_so = (one for one in known if one.startswith(whole))
        chosen = statement if statement in known else next(begin_so, None)
        if chosen is None and not absence():  # the text of the program, with its values
            normal = _core.fingerprint(statement)
            chosen = normal if normal in known else None
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

        if not LEAST_BUDGET_S <= budget_s <= MOST_BUDGET_S:
            raise QueryprofError(f"budget_s: is from {LEAST_BUDGET_S} to {MOST_BUDGET_S} seconds")
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
            "rewrites": [
                {
                    "statement": shortened(one.statement, 400),
                    "sql": shortened(one.sql, 400),
                    "how": shortened(one.how, LONGEST_LINE),
                }
                for one in advice.rewrites[:MOST_STATEMENTS]
            ],
            "not_measured": [
                {
                    "statement": shortened(one.statement, 200),
                    "reason": shortened(one.reason, LONGEST_LINE),
                }
                for one in advice.not_measured[:MOST_STATEMENTS]
            ],
            "not_measured_in_all": len(advice.not_measured),
            "outweighed": [shortened(one.sql, 400) for one in advice.outweighed[:MOST_STATEMENTS]],
            "cautions": [shortened(one, LONGEST_LINE) for one in cautions(advice)][:MOST_LINES],
        }

    def compare(self, before: str, after: str) -> Answer:
        """What got worse or better between two traces."""
        profiles = [profile_in(self._content(one), one) for one in (before, after)]
        found = compare(profiles[:1], profiles[1:])
        places = Places(*profiles)
        worse = regressions(found, Rules().fail_on)
        better = [one for one in found.statements if one.verdict is Verdict.BETTER]

        def shown(one: StatementChange | Change) -> Answer:
            place = where(one, places) if isinstance(one, StatementChange) else ""
            return {
                "what": shortened(title(one), 300),
                "how": shortened(change_text(one), LONGEST_LINE),
                "place": shortened(place, 200),
            }

        return {
            "is_worse": bool(worse),
            "whole": [
                f"{title(one)} {change_text(one)} ({one.verdict})"
                for one in found.whole
                if one.ratio
            ],
            "worse": [shown(one) for one in worse[:MOST_STATEMENTS]],
            "better": [shown(one) for one in better[:MOST_STATEMENTS]],
            "left_out": sum(max(0, len(one) - MOST_STATEMENTS) for one in (worse, better)),
            "cautions": [shortened(one, LONGEST_LINE) for one in cautions_of(found)],
        }

    def locks(self, database: str) -> Answer:
        """Which processes hold a lock of a database file now: ids and programs, without their
        arguments.
        """
        from queryprof.program.lock_owners import owners_of

        path = self.path_of(database)
        if not os.path.isfile(path):
            raise QueryprofError(f"{shortened(database, LONGEST_LINE)}: no such file")
        return {
            "locks": [
                {
                    "process": one.pid,
                    "does": one.does,
                    "program": shortened(program_named_in(one.command), 100) if one.command else "",
                }
                for one in owners_of(path)[:MOST_LINES]
            ]
        }

    def _read(self, trace: str) -> tuple[Report, tuple[Finding, ...]]:
        content = self._content(trace)
        digest = sha256(content, usedforsecurity=False).hexdigest()
        known = self._known.get(digest)
        if known is None:
            known = self._known[digest] = Report(
                profile_in(content, shortened(trace, LONGEST_LINE))
            )
            while len(self._known) > TRACES_KEPT:
                del self._known[next(iter(self._known))]
        # Findings are of the schema and the sources as they are now.
        sources = self._sources(known.profile)
        return known, findings_of(known, sources=sources, may_read=self._has)

    def _sources(self, profile: Profile) -> Sources:
        """Source files in the directory, and no others."""
        return Sources({file: one for file, one in profile.sources.items() if self._has(file)})

    @staticmethod
    def _named(found: tuple[Finding, ...], identity: str) -> Finding:
        for one in found:
            if one.identity == identity:
                return one
        raise QueryprofError("unknown finding; call `findings` for the list")

    @staticmethod
    def _plan(report: Report, statement: str) -> list[str]:
        plans = plans_by_statement(report.profile.plans).get(statement, ())
        steps = [f"{step}  ! {sign}" if sign else step for step, sign in marked_steps(plans, None)]
        return [shortened(step, LONGEST_LINE) for step in steps[:MOST_LINES]]
