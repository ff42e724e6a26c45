"""OpenTelemetry's protocol, for `queryprof export --format otlp` and `queryprof ship --otlp`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from queryprof.telemetry.otlp_export import OtlpExport

FORMAT = "otlp"


def otlp_export(endpoint: str | None, has_text: bool) -> OtlpExport:
    """What sends, as OpenTelemetry's variables say. Raises QueryprofError."""
    from queryprof.cli.fleet_extra import extra
    from queryprof.cli.output import print_message

    with extra("otlp"):
        from queryprof.telemetry.otlp_export import OtlpExport
        from queryprof.telemetry.otlp_sending import Sender, settings_in
    settings = settings_in(os.environ, endpoint)
    return OtlpExport(Sender(settings, print_message), has_text, settings.is_cumulative)


def export_otlp(given: tuple[str, ...], endpoint: str | None, has_text: bool) -> int:
    """Sends traces, each window of them for itself; returns the exit status."""
    from queryprof.analysis.units import counted
    from queryprof.cli.output import print_message
    from queryprof.cli.progress import progress
    from queryprof.cli.reading import LeftOut
    from queryprof.collect.given_traces import traces_of
    from queryprof.collect.reader import read_windows

    export = otlp_export(endpoint, has_text)
    left_out = LeftOut()
    traces: list[str] = []
    for one in given:
        with left_out:
            traces += traces_of(one)
    points = spans = sent_bytes = 0
    with progress("sending", len(traces)) as step:
        for path in traces:
            with left_out:
                for profile in read_windows(path, left_out.add):
                    sent = export.send(profile)
                    points += sent.points
                    spans += sent.spans
                    sent_bytes += sent.bytes
            step()
    print_message(
        f"{counted(points, 'point')} and {counted(spans, 'span')} sent, {sent_bytes:,} bytes"
    )
    return 1 if left_out else 0
