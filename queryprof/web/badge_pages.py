"""The badge's own answers: its script, the list of requests, and the card of a request."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import NamedTuple
from urllib.parse import parse_qs

from queryprof.core.own_imports import own_imports
from queryprof.core.recorder import muted
from queryprof.model import Process, Profile
from queryprof.report.inert import escape_control_characters
from queryprof.version import __version__
from queryprof.web.badge_requests import RecentRequests, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from queryprof.web.badge_requests import StatementLine

MAX_STATEMENT_CHARACTERS = 300
"""Length limit of a statement in the list, in characters."""

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "h1{font-size:1.25rem;overflow-wrap:anywhere}"
)

NOT_KEPT = "This request has not ended, or is no longer kept."


class BadgeResponse(NamedTuple):
    """An answer to a browser."""

    status: int
    kind: str
    content: bytes

    @property
    def headers(self) -> list[tuple[str, str]]:
        return [
            ("Content-Type", self.kind),
            ("Content-Length", str(len(self.content))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Content-Security-Policy", POLICY),
            ("Cross-Origin-Resource-Policy", "same-origin"),
        ]


def answer_badge_path(name: str, query: str, requests: RecentRequests) -> BadgeResponse:
    """Return the answer to one of the badge's own paths, given without its prefix."""
    if name == "badge.js":
        return BadgeResponse(200, "text/javascript; charset=utf-8", _badge_script())
    if name == "requests":
        numbers = parse_qs(query)
        first, ended = (
            _parse_request_number(numbers.get(name, [""])[0]) for name in ("first", "since")
        )
        found = [_request_entry(one) for one in requests.ended_since(first, ended)]
        text = json.dumps(found).replace("<", "\\u003c")
        return BadgeResponse(200, "application/json", text.encode())
    kind, _, number_text = name.partition("/")
    number = _parse_request_number(number_text)
    found_one = requests.by_number(number) if kind == "request" and number else None
    if found_one is None:
        return BadgeResponse(
            404, "text/html; charset=utf-8", _html_page("queryprof", f"<p>{NOT_KEPT}</p>")
        )
    with own_imports(), muted():  # the planner reads the schema of the program's databases
        return BadgeResponse(200, "text/html; charset=utf-8", _request_page(found_one))


def _parse_request_number(text: str) -> int:
    """Parse the number of a request; 0 if invalid."""
    return int(text) if text.isdecimal() and len(text) < 16 else 0


@cache
def _badge_script() -> bytes:
    return files("queryprof.web").joinpath("badge.js").read_bytes()


def _request_entry(request: Request) -> dict[str, Any]:
    worst = request.slowest_line
    return {
        "number": request.number,
        "ended": request.ended,
        "name": escape_control_characters(request.name),
        "status": request.status,
        "total_ms": round((request.end_unix_ns - request.start_unix_ns) / 1e6, 1),
        "queries": request.queries,
        "database_ms": round(request.database_ns / 1e6, 1),
        "repeats": [_statement_entry(one) for one in request.repeats],
        "worst": _statement_entry(worst) if worst else None,
        "unknown": escape_control_characters(request.unknown),
    }


def _statement_entry(line: StatementLine) -> dict[str, Any]:
    return {
        "statement": escape_control_characters(line.statement[:MAX_STATEMENT_CHARACTERS]),
        "executions": line.executions,
        "ms": round(line.self_ns / 1e6, 1),
        "place": escape_control_characters(_statement_place(line)),
    }


def _statement_place(line: StatementLine) -> str:
    """Return the line of the program, and for a lazy load the relation and template."""
    frame = line.site
    if frame is None:
        return line.note or "no line of the program"
    place = f"{os.path.basename(frame.file)}:{frame.line} {frame.function}"
    return f"{place} ({line.note})" if line.note else place


def _request_page(request: Request) -> bytes:
    """Return the page of a request: its findings and costliest statements, as in a notebook."""
    from queryprof.analysis.report import Report
    from queryprof.analysis.units import counted
    from queryprof.findings.lookup import findings_of_request
    from queryprof.program.sources import Sources
    from queryprof.report.html.cards import summary_cards_html

    profile = _request_profile(request)
    report, sources = Report(profile), Sources(profile.sources, {})
    loops = [
        f"A query in a loop: {counted(one.executions, 'time')} at {_statement_place(one)}:"
        f" {one.statement[:MAX_STATEMENT_CHARACTERS]}"
        for one in request.repeats
    ]
    found = findings_of_request(report, sources)
    body = summary_cards_html(report, found, sources.lines_around, loops, heading="h2", ways="")
    status = f", status {request.status}" if request.status is not None else ""
    return _html_page(f"{request.name}{status}", body)


def _request_profile(request: Request) -> Profile:
    process = Process(
        id=1,
        pid=os.getpid(),
        parent_pid=os.getppid(),
        host="",
        argv=(request.name,),
        directory=os.getcwd(),
        python_version=".".join(map(str, sys.version_info[:3])),
        sqlite_version="",
        queryprof_version=__version__,
        start_unix_ns=request.start_unix_ns,
        end_unix_ns=request.end_unix_ns,
        clean_end=True,
        clock="",
        rows_estimated=False,
        counters_off=None,
        flush_ns=0,
        folded_statements=0,
        folded_calls=0,
        lost_counters=0,
        unasked_plans=0,
        read_bytes=None,
        written_bytes=None,
        clock_tick_ns=None,
        files_off=None,
        unseen_files=0,
        unmeasured=None,
    )
    left_out = tuple(filter(None, (request.unknown,)))
    aggregates = tuple(
        one._replace(span="", thread=replace(one.thread, process_id=1))
        for one in request.aggregates
    )
    whole = _recorded_so_far()
    return Profile(
        (process,),
        aggregates,
        plans=request.plans,
        left_out=left_out,
        notes=whole.notes,
        stack_samples=whole.stack_samples,
        exemplars=whole.exemplars,  # a few per statement, with their stacks
        systems=whole.systems,
        sources=whole.sources,
    )


def _recorded_so_far() -> Profile:
    """Return what this process has recorded so far, with libraries' notes; empty after
    recording.
    """
    from queryprof.recorder.recording import profile_so_far
    from queryprof.recorder.session import session

    return profile_so_far() if session.is_on else Profile((), ())


def _html_page(title: str, body: str) -> bytes:
    """Return a complete page, in light or dark colours."""
    from html import escape

    name = escape(escape_control_characters(title))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{name}</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{STYLE}</style>"
        f"<body><main><h1>{name}</h1>{body}</main></body></html>"
    ).encode()
