"""Charts of two runs side by side: how busy the database was over time, on the same axes."""

from __future__ import annotations

from itertools import zip_longest

import plotille

from queryprof.comparing.comparison_result import Course

HEIGHT = 8
MARGIN = 14
"""Columns for the axis and its labels."""

GAP = 2
MIN_COLUMNS = 15

BLANK = "\N{BRAILLE PATTERN BLANK}"


def charts_side_by_side(before: Course, after: Course, width: int) -> list[str]:
    """Return the lines of two charts, side by side.

    The x axis has the seconds since the start. The y axis has the share of time spent in the
    database; it exceeds 1 if several threads or processes used the database at once.
    """
    columns = max(MIN_COLUMNS, (width - GAP) // 2 - MARGIN)
    last_s = max([second for course in (before, after) for second, _ in course], default=0) or 1.0
    max_share = max([share for course in (before, after) for _, share in course], default=0) or 1.0
    charts = [
        _chart_lines(title, course, columns, last_s, max_share)
        for title, course in (("before", before), ("after", after))
    ]
    left = columns + MARGIN
    return [
        f"{first:<{left + GAP}}{second}" for first, second in zip_longest(*charts, fillvalue="")
    ]


def _chart_lines(
    title: str, course: Course, columns: int, last_s: float, max_share: float
) -> list[str]:
    figure = plotille.Figure()
    figure.width, figure.height = columns, HEIGHT
    figure.with_colors = False
    figure.x_label, figure.y_label = "s", title
    figure.set_x_limits(0, last_s)
    figure.set_y_limits(0, max_share)
    figure.x_ticks_fkt = lambda value, _: f"{value:.3g}"
    figure.y_ticks_fkt = lambda value, _: f"{value:.2f}"
    if course:
        figure.plot([second for second, _ in course], [share for _, share in course])
    lines = [line[: columns + MARGIN] for line in str(figure.show()).splitlines()]
    return [line.rstrip(f"{BLANK} ") for line in lines]
