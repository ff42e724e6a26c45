"""An HTML page about a period: a lane of calls per thread, and the write lock of each database.

The page is a picture (SVG) without scripts, and loads nothing. Point at a bar to see its details.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from xml.etree.ElementTree import Element, SubElement, tostring

from queryprof.analysis.lock_holders import LockHolders, host_by_process
from queryprof.analysis.recent import RecentActivity, call_duration_ns, clock_time
from queryprof.analysis.report import Report
from queryprof.analysis.threads import process_namer, thread_and_process_name
from queryprof.analysis.units import counted, duration, percent
from queryprof.model import CallPath, LockEvent, RecentCall, Thread
from queryprof.report.html.html_report import MARK
from queryprof.report.inert import escape_control_characters
from queryprof.report.places import Places

WIDTH, LEFT = 1200, 230
"""Width in pixels of the picture, and of the lane names at its left."""

CHARACTER, MIN_LABELLED = 7, 60
"""Width in pixels of a character, and of the narrowest bar that has a label."""

LANE, BAR, GAP = 26, 16, 14
"""Height in pixels of a lane, of a bar, and of the extra gap above the lanes of a database."""

TICKS = 6
COLOURS = 6
"""Number of statements that have their own colour."""

MAX_LANES = 60
TITLE_CHARACTERS = 300

PAGE = """<!doctype html>
{mark}
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


@cache
def _style() -> str:
    page = files("queryprof.report.html").joinpath("page")
    return page.joinpath("timeline.css").read_text("utf-8")


@dataclass(frozen=True, slots=True)
class _Mark:
    """A bar in a lane."""

    start_unix_ns: int
    duration_ns: int
    kind: str
    title: str
    label: str = ""


def timeline_page(report: Report, activity: RecentActivity) -> str:
    """Return the HTML page."""
    picture = _Picture(report, activity)
    period = activity.period
    title = f"{clock_time(period.start_unix_ns)} to {clock_time(period.end_unix_ns)}"
    body = Element("main")
    SubElement(body, "h1").text = f"queryprof: {title}"
    body.append(picture.legend())
    body.append(picture.drawing())
    return PAGE.format(
        mark=MARK,
        title=escape(f"queryprof: {title}"),
        style=_style(),
        body=tostring(body, encoding="unicode", method="html"),
    )


class _Picture:
    def __init__(self, report: Report, activity: RecentActivity) -> None:
        self._activity = activity
        self._places = Places(report.profile)
        self._process_of = process_namer(report.profile)
        self._ns_per_pixel = max(activity.period.ns, 1) / (WIDTH - LEFT)
        statements = dict.fromkeys(one.statement for one in activity.statements)
        first = list(statements)[:COLOURS]
        self._colours = {statement: f"c{place}" for place, statement in enumerate(first)}
        self._holders = LockHolders(report.profile.lock_events, host_by_process(report.profile))
        self._svg = Element("svg")
        self._y = 20

    def legend(self) -> Element:
        """Return the list of coloured statements with their times."""
        listed = Element("ul")
        period_ns = max(self._activity.period.ns, 1)
        for statement, colour in self._colours.items():
            ns = sum(o.total_ns for o in self._activity.statements if o.statement == statement)
            item = SubElement(listed, "li")
            SubElement(item, "span", {"class": f"swatch {colour}"})
            SubElement(item, "code").text = _cut(statement)
            item[-1].tail = f" {duration(ns)} ({percent(ns / period_ns)} of the time)"
        if len({one.statement for one in self._activity.statements}) > COLOURS:
            item = SubElement(listed, "li")
            SubElement(item, "span", {"class": "swatch other"}).tail = "other statements"
        return listed

    def drawing(self) -> Element:
        """Return the lanes under a time axis."""
        now = self._activity
        lanes: dict[Thread, list[RecentCall]] = {}
        for call in now.calls:
            lanes.setdefault(call.thread, []).append(call)
        for thread, _ in now.stalls:
            if thread:
                lanes.setdefault(thread, [])
        for thread in sorted(lanes, key=lambda one: (one.process_id, one.name))[:MAX_LANES]:
            self._lane(self._thread(thread), map(self._call_mark, lanes[thread]))
            stalls = [stall for of, stall in now.stalls if of == thread]
            for stall in stalls:
                at = stall.path[0] if stall.path else stall.function
                title = f"event loop blocked by {self._places.frame_text(at)}"
                self._bar(
                    _Mark(stall.started_unix_ns, stall.duration_ns, "stall", title), self._y - LANE
                )
        if len(lanes) > MAX_LANES:
            self._name(f"{len(lanes) - MAX_LANES} more threads")
        for database in dict.fromkeys(event.database for event in (*now.holds, *now.waits)):
            self._y += GAP
            name = os.path.basename(database) or database
            holds = [one for one in now.holds if one.database == database]
            self._lane(f"write lock of {name}", map(self._hold_mark, holds))
            waits = [one for one in now.waits if one.database == database]
            if waits:
                self._lane("calls that waited for the lock", map(self._wait_mark, waits))
        self._axis()
        self._svg.set("viewBox", f"0 0 {WIDTH} {self._y + 8}")
        self._svg.set("role", "img")
        self._svg.set("aria-label", "Calls, locks and stalls over time")
        return self._svg

    def _axis(self) -> None:
        period = self._activity.period
        for tick in range(TICKS + 1):
            at_unix_ns = period.start_unix_ns + period.ns * tick // TICKS
            x = self._x(at_unix_ns)
            line = {"x1": f"{x:.1f}", "x2": f"{x:.1f}", "y1": "18", "y2": str(self._y)}
            self._svg.insert(0, Element("line", {**line, "class": "line"}))
            anchor = "end" if tick == TICKS else "start" if tick == 0 else "middle"
            place = {"x": f"{x:.1f}", "y": "12", "class": "dim", "text-anchor": anchor}
            SubElement(self._svg, "text", place).text = clock_time(at_unix_ns)

    def _lane(self, name: str, marks: Iterable[_Mark]) -> None:
        y = self._y
        self._name(name)
        for mark in self._visible_marks(marks):
            self._bar(mark, y)

    def _name(self, name: str) -> None:
        place = {"x": "0", "y": str(self._y + BAR - 3)}
        SubElement(self._svg, "text", place).text = _cut(name, LEFT // CHARACTER)
        self._y += LANE

    def _bar(self, mark: _Mark, y: int) -> None:
        period = self._activity.period
        start = max(mark.start_unix_ns, period.start_unix_ns)
        end = min(mark.start_unix_ns + mark.duration_ns, period.end_unix_ns)
        width = max((end - start) / self._ns_per_pixel, 1)
        bar = SubElement(
            self._svg,
            "rect",
            {
                "x": f"{self._x(start):.1f}",
                "y": str(y),
                "width": f"{width:.1f}",
                "height": str(BAR),
                "class": mark.kind,
            },
        )
        times = f"{clock_time(mark.start_unix_ns)}, {duration(mark.duration_ns)}"
        SubElement(bar, "title").text = _cut(f"{times}: {mark.title}")
        if mark.label and width >= MIN_LABELLED:
            place = {"x": f"{self._x(start) + 4:.1f}", "y": str(y + BAR - 4), "class": "label"}
            label = _cut(mark.label, int((width - 8) / CHARACTER))
            SubElement(self._svg, "text", place).text = label

    def _visible_marks(self, marks: Iterable[_Mark]) -> Iterator[_Mark]:
        """Combine neighbors that are too short to be seen into one bar."""
        pending: list[_Mark] = []
        for mark in sorted(marks, key=lambda one: one.start_unix_ns):
            is_short = mark.duration_ns < self._ns_per_pixel
            if pending and (not is_short or self._is_apart(pending, mark)):
                yield _combined(pending)
                pending = []
            if is_short:
                pending.append(mark)
            else:
                yield mark
        if pending:
            yield _combined(pending)

    def _is_apart(self, before: list[_Mark], mark: _Mark) -> bool:
        end_unix_ns = before[-1].start_unix_ns + before[-1].duration_ns
        return mark.start_unix_ns - end_unix_ns > self._ns_per_pixel

    def _call_mark(self, call: RecentCall) -> _Mark:
        kind = self._colours.get(call.statement, "other")
        ended = ""
        if call.duration_ns is None:
            kind, ended = f"{kind} open", ", not ended"
        elif call.has_failed:
            kind, ended = f"{kind} failed", ", failed"
        ns = call_duration_ns(call, self._activity.period.end_unix_ns)
        title = f"{call.statement}{ended} at {self._place(call.path)}"
        return _Mark(call.start_unix_ns, ns, kind, title)

    def _hold_mark(self, hold: LockEvent) -> _Mark:
        place = self._place(hold.path)
        title = f"held by {place}, {self._thread(hold.thread)}: {hold.statement}"
        return _Mark(hold.start_unix_ns, hold.duration_ns, "held", title, place)

    def _wait_mark(self, wait: LockEvent) -> _Mark:
        found = self._holders.refusing_holds(wait)
        by = f" for {self._place(found[0][0].path)}" if found else ""
        title = f"{self._place(wait.path)}, {self._thread(wait.thread)} waited{by}"
        return _Mark(wait.start_unix_ns, wait.duration_ns, "wait", title)

    def _place(self, path: CallPath) -> str:
        return self._places.frame_text(path[0]) if path else "(unknown)"

    def _thread(self, thread: Thread) -> str:
        return thread_and_process_name(thread.name, self._process_of(thread))

    def _x(self, at_unix_ns: int) -> float:
        return LEFT + (at_unix_ns - self._activity.period.start_unix_ns) / self._ns_per_pixel


def _combined(marks: list[_Mark]) -> _Mark:
    if len(marks) == 1:
        return marks[0]
    first, last = marks[0], marks[-1]
    span_ns = last.start_unix_ns + last.duration_ns - first.start_unix_ns
    busy_ns = sum(mark.duration_ns for mark in marks)
    longest = max(marks, key=lambda mark: mark.duration_ns)
    title = f"{counted(len(marks), 'call')}, {duration(busy_ns)} in total, longest: {longest.title}"
    return _Mark(first.start_unix_ns, span_ns, longest.kind, title)


def _cut(text: str, characters: int = TITLE_CHARACTERS) -> str:
    shown = escape_control_characters(text)
    return shown if len(shown) <= characters else f"{shown[: characters - 1]}…"
