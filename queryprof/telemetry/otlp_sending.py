"""Sends messages of OTLP over HTTP (https://opentelemetry.io/docs/specs/otlp/#otlphttp): what is
asked to come later is tried again, what is too large goes in halves.
"""

from __future__ import annotations

import gzip
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from queryprof.errors import QueryprofError
from queryprof.version import __version__

ENDPOINT = "http://localhost:4318"
MOST_ITEMS, MOST_BYTES = 500, 1_000_000
TRIES, LONGEST_WAIT_S = 5, 60.0
LATER = (429, 502, 503, 504)
TOO_LARGE = 413
LONGEST_ANSWER = 1 << 20
PATHS = {
    "/v1/metrics": ExportMetricsServiceResponse,
    "/v1/traces": ExportTraceServiceResponse,
}
Item = TypeVar("Item")


class OtlpError(QueryprofError):
    """An endpoint does not take what it is sent."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Where to send, as OpenTelemetry's variables say."""

    endpoint: str = ENDPOINT
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 10.0
    certificate: str | None = None
    is_cumulative: bool = False


def settings_in(environ: Mapping[str, str], endpoint: str | None = None) -> Settings:
    """The settings in an environment; an endpoint that is given counts before its own.

    Raises:
        OtlpError: one cannot be understood.
    """
    prefix = "OTEL_EXPORTER_OTLP_"
    url = endpoint or environ.get(f"{prefix}ENDPOINT") or ENDPOINT
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise OtlpError(f"{url}: is no endpoint: http://HOST:PORT, without a user")
    headers = {}
    for pair in filter(None, environ.get(f"{prefix}HEADERS", "").split(",")):
        name, is_pair, value = pair.partition("=")
        text = unquote(value.strip())
        if not is_pair or not name.strip() or not text.isprintable():
            raise OtlpError(f"{prefix}HEADERS: must be NAME=VALUE, with commas between")
        headers[name.strip()] = text
    timeout = environ.get(f"{prefix}TIMEOUT") or "10000"
    if not timeout.isdecimal() or not 0 < int(timeout) < 10**8:
        raise OtlpError(f"{prefix}TIMEOUT: must be milliseconds, not {timeout!r}")
    preference = environ.get(f"{prefix}METRICS_TEMPORALITY_PREFERENCE", "").lower()
    return Settings(
        url.rstrip("/"),
        headers,
        int(timeout) / 1000,
        environ.get(f"{prefix}CERTIFICATE") or None,
        preference == "cumulative",
    )


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """An endpoint elsewhere is to be named, not followed."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Sender:
    """Sends to one endpoint.

    Args:
        note: called with what the endpoint says, a line each.
        wait: waits so many seconds.

    Raises:
        OtlpError: the certificate cannot be read.
    """

    def __init__(
        self,
        settings: Settings,
        note: Callable[[str], None],
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings = settings
        self._note = note
        self._wait = wait
        try:
            context = ssl.create_default_context(cafile=settings.certificate)
        except OSError as error:
            reason = error.strerror or error
            raise OtlpError(f"OTEL_EXPORTER_OTLP_CERTIFICATE: {reason}") from error
        https = urllib.request.HTTPSHandler(context=context)
        self._opener = urllib.request.build_opener(_NoRedirects(), https)

    def send(
        self, path: str, items: Sequence[Item], request: Callable[[Sequence[Item]], Message]
    ) -> int:
        """Sends items, in as many messages as are needed; returns of how many bytes.

        Raises:
            OtlpError: the endpoint does not take them.
        """
        sent = 0
        for at in range(0, len(items), MOST_ITEMS):
            sent += self._send(path, items[at : at + MOST_ITEMS], request)
        return sent

    def _send(
        self, path: str, items: Sequence[Item], request: Callable[[Sequence[Item]], Message]
    ) -> int:
        content = request(items).SerializeToString()
        if len(content) <= MOST_BYTES or len(items) == 1:
            packed = gzip.compress(content, 5, mtime=0)
            if self._is_taken(path, packed, len(items)):
                return len(packed)
        middle = len(items) // 2
        return self._send(path, items[:middle], request) + self._send(path, items[middle:], request)

    def _is_taken(self, path: str, content: bytes, count: int) -> bool:
        """Whether a message was taken; False: it is too large."""
        url = self._settings.endpoint + path
        headers = {
            **self._settings.headers,
            "Content-Type": "application/x-protobuf",
            "Content-Encoding": "gzip",
            "User-Agent": f"queryprof/{__version__}",
        }
        for number in range(1, TRIES + 1):
            message = urllib.request.Request(url, content, headers, method="POST")  # noqa: S310
            try:
                with self._opener.open(message, timeout=self._settings.timeout_s) as answer:
                    self._read(path, url, answer.read(LONGEST_ANSWER))
                    return True
            except urllib.error.HTTPError as error:
                error.close()
                if error.code == TOO_LARGE and count > 1:
                    return False
                if error.code not in LATER or number == TRIES:
                    raise OtlpError(f"{url}: answers {error.code} {error.reason}") from error
                self._wait(_wait_s(error.headers.get("Retry-After"), number))
            except (OSError, HTTPException, ValueError) as error:
                reason = getattr(error, "reason", None) or error
                raise OtlpError(f"{url}: {str(reason) or type(error).__name__}") from error
        return True

    def _read(self, path: str, url: str, content: bytes) -> None:
        """Notes what the endpoint has not taken. Raises OtlpError: it is no endpoint."""
        answer = PATHS[path]()
        try:
            answer.ParseFromString(content)
        except DecodeError as error:
            raise OtlpError(f"{url}: does not answer as an endpoint of OTLP") from error
        partial = answer.partial_success
        rejected = getattr(partial, "rejected_data_points", 0) or getattr(
            partial, "rejected_spans", 0
        )
        if rejected or partial.error_message:
            self._note(f"{url}: has rejected {rejected:,}: {partial.error_message or 'no reason'}")


def _wait_s(retry_after: str | None, number: int) -> float:
    """How long to wait before the next try: as the endpoint says, or twice as long each time."""
    wait_s = float(2 ** (number - 1))
    if retry_after and retry_after.strip().isdecimal():
        wait_s = float(retry_after)
    elif retry_after:
        try:
            wait_s = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (ValueError, OverflowError):
            pass
    return min(max(wait_s, 0.0), LONGEST_WAIT_S)
