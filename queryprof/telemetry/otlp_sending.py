"""Send OTLP messages over HTTP (https://opentelemetry.io/docs/specs/otlp/#otlphttp).

A message is sent again if the endpoint asks for a retry, and split if it is too large.
"""

from __future__ import annotations

import gzip
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from queryprof.errors import QueryprofError
from queryprof.version import __version__

ENDPOINT = "http://localhost:4318"
MAX_ITEMS, MAX_BYTES = 500, 1_000_000
MAX_TRIES, MAX_WAIT_S = 5, 60.0
RETRY_STATUSES = (429, 502, 503, 504)
TOO_LARGE = 413
PERMANENT_STATUSES = (400, 404, 405, TOO_LARGE, 415, 422)
"""HTTP status codes that reject a message for good. The message must not be sent again."""

OWN_HEADERS = ("content-length", "content-type", "content-encoding", "transfer-encoding", "host")
MAX_REASON_CHARACTERS = 200
MAX_ANSWER_BYTES = 1 << 20
PATHS = {
    "/v1/metrics": ExportMetricsServiceResponse,
    "/v1/traces": ExportTraceServiceResponse,
}
Item = TypeVar("Item")


class OtlpError(QueryprofError):
    """An endpoint did not accept a message."""


class RejectedError(OtlpError):
    """An endpoint rejected a message for good, so that a retry is useless."""


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """The endpoint and how to send to it, from OpenTelemetry's environment variables."""

    endpoint: str = ENDPOINT
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 10.0
    certificate: str | None = None
    is_cumulative: bool = False


def read_endpoint_settings(
    environ: Mapping[str, str], endpoint: str | None = None
) -> EndpointSettings:
    """Read the settings from environment variables. `endpoint` takes precedence over its variable.

    Raises:
        OtlpError: a setting is invalid.
    """
    prefix = "OTEL_EXPORTER_OTLP_"
    url = endpoint or environ.get(f"{prefix}ENDPOINT") or ENDPOINT
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1) > 0
        has_user = "@" in parts.netloc
    except ValueError:
        is_one = has_user = False
    if not is_one or has_user:
        shown = "the endpoint" if has_user else url
        raise OtlpError(
            f"{shown}: not an endpoint; write http://HOST:PORT, without a user name or password"
        )
    headers = {}
    for pair in filter(None, environ.get(f"{prefix}HEADERS", "").split(",")):
        name, is_pair, value = pair.partition("=")
        text = unquote(value.strip())
        is_own = name.strip().lower() in OWN_HEADERS
        if not is_pair or not name.strip() or not text.isprintable() or is_own:
            raise OtlpError(f"{prefix}HEADERS: must be NAME=VALUE, with commas between")
        headers[name.strip()] = text
    timeout = environ.get(f"{prefix}TIMEOUT") or "10000"
    if not timeout.isdecimal() or not 0 < int(timeout) < 10**8:
        raise OtlpError(f"{prefix}TIMEOUT: must be milliseconds, not {timeout!r}")
    preference = environ.get(f"{prefix}METRICS_TEMPORALITY_PREFERENCE", "").lower()
    return EndpointSettings(
        url.rstrip("/"),
        headers,
        int(timeout) / 1000,
        environ.get(f"{prefix}CERTIFICATE") or None,
        preference == "cumulative",
    )


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Rejects redirects, because the user must configure the endpoint to which data is sent."""

    def redirect_request(self, *_: Any) -> None:
        return None


class _Http(urllib.request.HTTPHandler):
    """Opens connections and records their sockets, so that a timer can shut them down."""

    def __init__(self, sockets: list[socket.socket]) -> None:
        super().__init__()
        self._sockets = sockets

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        """Open a connection."""
        sockets = self._sockets

        class KnownHttpConnection(HTTPConnection):
            def connect(self) -> None:
                super().connect()
                sockets.append(self.sock)

        found: HTTPResponse = self.do_open(KnownHttpConnection, req)
        return found


class _Https(urllib.request.HTTPSHandler):
    """Opens encrypted connections and records their sockets, so that a timer can shut them down."""

    def __init__(self, sockets: list[socket.socket], context: ssl.SSLContext) -> None:
        super().__init__()
        self._sockets, self._own_context = sockets, context

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        """Open a connection."""
        sockets = self._sockets

        class KnownHttpsConnection(HTTPSConnection):
            def connect(self) -> None:
                super().connect()
                sockets.append(self.sock)

        found: HTTPResponse = self.do_open(
            KnownHttpsConnection,
            req,
            context=self._own_context,
        )
        return found


def _close_sockets(sockets: list[socket.socket], is_over: threading.Event) -> None:
    """Shut down connections, so that blocked reads end."""
    is_over.set()
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


class DeliveredMessages(Protocol):
    """Records which messages of a profile the endpoint has accepted."""

    def has(self, message: str) -> bool:
        """Return whether a message was accepted."""

    def add(self, message: str) -> None:
        """Record that a message was accepted."""


class _NoDeliveredMessages:
    """Records nothing, for profiles that are sent only once."""

    def has(self, message: str) -> bool:  # noqa: ARG002
        """Return False."""
        return False

    def add(self, message: str) -> None:
        """Do nothing."""


NOTHING = _NoDeliveredMessages()


class OtlpSender:
    """Sends messages to one endpoint.

    Args:
        note: called with one line for each problem that the endpoint reports.
        wait: a function that sleeps for a number of seconds.

    Raises:
        OtlpError: the CA certificate cannot be read.
    """

    def __init__(
        self,
        settings: EndpointSettings,
        note: Callable[[str], None],
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings = settings
        self._note = note
        self._wait = wait
        try:
            self._context = ssl.create_default_context(cafile=settings.certificate)
        except OSError as error:
            reason = error.strerror or error
            raise OtlpError(f"OTEL_EXPORTER_OTLP_CERTIFICATE: {reason}") from error

    def send(
        self,
        path: str,
        items: Sequence[Item],
        request: Callable[[Sequence[Item]], Message],
        delivered: DeliveredMessages = NOTHING,
        name: str = "",
    ) -> int:
        """Send up to MAX_ITEMS items in one message, or in halves if the message is too large.

        Args:
            request: makes a message of the items. delivered: records the halves that the endpoint
                has accepted, so that they are not sent again.
            name: the message's name in `delivered`.

        Returns:
            The number of sent bytes (compressed).

        Raises:
            OtlpError: the endpoint does not accept a message.
        """
        content = request(items).SerializeToString()
        in_halves = f"{name}.halves"
        if (len(content) <= MAX_BYTES or len(items) == 1) and not delivered.has(in_halves):
            packed = gzip.compress(content, 5, mtime=0)
            if self._was_accepted(path, packed, len(items)):
                return len(packed)
        delivered.add(in_halves)
        middle, sent = len(items) // 2, 0
        for half, some in ((f"{name}.1", items[:middle]), (f"{name}.2", items[middle:])):
            if not delivered.has(half):
                sent += self.send(path, some, request, delivered, half)
                delivered.add(half)
        return sent

    def _was_accepted(self, path: str, content: bytes, count: int) -> bool:
        """Send a message. Return False if the endpoint reports that it is too large."""
        url = self._settings.endpoint + path
        headers = {
            **self._settings.headers,
            "Content-Type": "application/x-protobuf",
            "Content-Encoding": "gzip",
            "User-Agent": f"queryprof/{__version__}",
        }
        for number in range(1, MAX_TRIES + 1):
            message = urllib.request.Request(url, content, headers, method="POST")  # noqa: S310
            try:
                with (
                    self._watch() as opener,
                    opener.open(message, timeout=self._settings.timeout_s) as answer,
                ):
                    kind = answer.headers.get("Content-Type", "")
                    found = answer.read(MAX_ANSWER_BYTES)
                    is_cut = answer.length and len(found) < MAX_ANSWER_BYTES
                    if is_cut or answer.headers.defects:  # by its status, the endpoint accepted it
                        self._note(f"{url}: received the data, but its answer is incomplete")
                        return True
                    self._read(path, url, kind, found)
                return True
            except urllib.error.HTTPError as error:
                error.close()
                if error.code == TOO_LARGE and count > 1:
                    return False
                if error.code not in RETRY_STATUSES or number == MAX_TRIES:
                    failure = RejectedError if error.code in PERMANENT_STATUSES else OtlpError
                    phrase = str(error.reason)[:MAX_REASON_CHARACTERS]
                    raise failure(f"{url}: answered {error.code} {phrase}") from error
                self._wait(_retry_wait_s(error.headers.get("Retry-After"), number))
            except (OSError, HTTPException, ValueError) as error:
                reason = getattr(error, "reason", None) or error
                text = (str(reason) or type(error).__name__)[:MAX_REASON_CHARACTERS]
                raise OtlpError(f"{url}: {text}") from error
        return True

    @contextmanager
    def _watch(self) -> Iterator[urllib.request.OpenerDirector]:
        """Yield an opener whose connections are shut down after the timeout, even if the server
        sends slowly.
        """
        sockets: list[socket.socket] = []
        is_over = threading.Event()
        timer = threading.Timer(self._settings.timeout_s, _close_sockets, (sockets, is_over))
        timer.daemon = True
        timer.start()
        try:
            yield urllib.request.build_opener(
                urllib.request.ProxyHandler(),
                _NoRedirects(),
                _Http(sockets),
                _Https(sockets, self._context),
            )
        except (OSError, HTTPException):
            if not is_over.is_set():
                raise
        finally:
            timer.cancel()
        if is_over.is_set():
            raise TimeoutError("timed out")

    def _read(self, path: str, url: str, kind: str, content: bytes) -> None:
        """Read the endpoint's answer, and report rejected items. Raises OtlpError if the answer is
        a web page.
        """
        answer = PATHS[path]()
        try:
            answer.ParseFromString(content)
        except DecodeError as error:
            if "html" in kind or content.lstrip()[:1] == b"<":
                raise OtlpError(f"{url}: is not an OTLP endpoint") from error
            self._note(f"{url}: received the data, but its answer is not protobuf")
            return
        partial = answer.partial_success
        rejected = getattr(partial, "rejected_data_points", 0) or getattr(
            partial, "rejected_spans", 0
        )
        if rejected or partial.error_message:
            why = (partial.error_message or "no reason")[:MAX_REASON_CHARACTERS]
            self._note(f"{url}: rejected {rejected:,}: {why}")


def _retry_wait_s(retry_after: str | None, number: int) -> float:
    """Return how many seconds to wait before the next try: as long as the endpoint requests, or
    else twice as long as before. The maximum is MAX_WAIT_S.
    """
    wait_s = float(2 ** (number - 1))
    if retry_after and retry_after.strip().isdecimal():
        wait_s = float(retry_after)
    elif retry_after:
        try:
            wait_s = parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (ValueError, OverflowError):
            pass
    return min(max(wait_s, 0.0), MAX_WAIT_S)
