"""OpenTelemetry's protocol, for `queryprof fleet export --otlp` and `fleet ship --otlp`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from queryprof.telemetry.otlp_export import OtlpExport


ENVIRONMENT = "env"


def otlp_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for an endpoint and for the data sent to it."""
    with_text = click.option(
        "--statement-text", "has_text", is_flag=True, help="Also send the texts of statements."
    )
    with_endpoint = click.option(
        "--otlp",
        "endpoint",
        metavar="URL",
        help="URL of the OpenTelemetry endpoint; `env` stands for OTEL_EXPORTER_OTLP_ENDPOINT.",
    )
    return with_endpoint(with_text(command))


def otlp_exporter(endpoint: str | None, has_text: bool) -> OtlpExport:
    """Return an exporter with the settings in OpenTelemetry's variables. Raises QueryprofError.

    Args:
        endpoint: a URL; ENVIRONMENT for OTEL_EXPORTER_OTLP_ENDPOINT.
    """
    from queryprof.cli.fleet_extra import extra_imports
    from queryprof.cli.output import print_message

    with extra_imports("otlp"):
        from queryprof.telemetry.otlp_export import OtlpExport
        from queryprof.telemetry.otlp_sending import OtlpSender, read_endpoint_settings
    settings = read_endpoint_settings(os.environ, None if endpoint == ENVIRONMENT else endpoint)
    return OtlpExport(OtlpSender(settings, print_message), has_text, settings.is_cumulative)


def send_traces_by_otlp(given: tuple[str, ...], endpoint: str | None, has_text: bool) -> int:
    """Send traces, each window separately. Returns the exit status."""
    from queryprof.analysis.units import counted
    from queryprof.cli.output import print_message
    from queryprof.cli.progress import progress
    from queryprof.cli.reading import SkippedInputNotes
    from queryprof.collect.given_traces import traces_for_argument
    from queryprof.collect.reader import read_windows

    export = otlp_exporter(endpoint, has_text)
    left_out = SkippedInputNotes()
    traces: list[str] = []
    for one in given:
        with left_out:
            traces += traces_for_argument(one)
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
