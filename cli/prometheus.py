"""`queryprof fleet prometheus`: an endpoint for Prometheus."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import click

from queryprof.cli.output import print_message
from queryprof.errors import QueryprofError

if TYPE_CHECKING:
    from collections.abc import Callable

    from queryprof.region.live import ActivityReader
    from queryprof.telemetry.counters import MetricSeries

LOOK_S = 5.0
"""Seconds between two reads of the recorded processes, independent of scrapes."""

MAX_REQUEST_S = 10.0
MAX_CONNECTIONS = 64
"""Maximum number of simultaneous connections. A scraper needs one connection."""
PATHS = ("/", "/metrics")
MAX_CACHED = 16
"""Maximum number of formats whose content is cached."""


@click.command()
@click.option(
    "--listen",
    default="127.0.0.1:9464",
    show_default=True,
    metavar="HOST:PORT",
    help="Address to listen on; port 0 picks a free one.",
)
@click.argument("target", required=False)
def prometheus(listen: str, target: str | None) -> None:
    """Serve counters of recorded programs to Prometheus.

    TARGET is a process id, a trace, or a directory of traces. The default is all your recorded
    processes. It reads them every 5 seconds.
    """
    from queryprof.cli.top import target_filter
    from queryprof.region.live import ActivityReader

    address = _parse_address(listen)
    watch = ActivityReader(target_filter(target, "prometheus"))
    endpoint = ServedCounters(watch)
    try:
        server = _MetricsServer(address, endpoint)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise QueryprofError(f"--listen {listen}: {reason}") from error
    if not endpoint.read_processes() and target:
        print_message(f"{target}: no running process is recorded there yet")
    threading.Thread(
        target=endpoint.read_repeatedly, args=(server.shutdown,), name="looks", daemon=True
    ).start()
    host, port = server.server_address[:2]
    shown = f"[{host!s}]" if ":" in str(host) else str(host)
    print_message(f"http://{shown}:{port}/metrics")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    if endpoint.failure:
        raise QueryprofError(f"prometheus ended: {endpoint.failure}")


def _parse_address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{listen!r} is not HOST:PORT", param_hint="--listen")
    return host.strip("[]"), int(port)


class ServedCounters:
    """The counters to serve, as of the last read of the processes.

    Attributes:
        failure: why reading has stopped, or "".
    """

    def __init__(self, watch: ActivityReader) -> None:
        from queryprof.cli.fleet_extra import extra_imports

        with extra_imports("prometheus"):
            from queryprof.telemetry import prometheus_metrics
        from queryprof.telemetry.counters import MetricSeries

        self._exposed = prometheus_metrics.exposition
        self._watch = watch
        self._counters: MetricSeries = MetricSeries()
        self._lock = threading.Lock()
        self._known: dict[str, tuple[str, bytes]] = {}
        self.failure = ""

    def read_processes(self) -> int:
        """Read the processes, and return their number."""
        with self._lock:
            found = self._watch.read_activity()
            self._counters.add(found)
            self._known.clear()
            left_out, self._watch.left_out[:] = self._watch.left_out[:], []
        for reason in left_out:
            print_message(f"skipped: {reason}")
        return len(found)

    def read_repeatedly(self, end: Callable[[], None]) -> None:
        """Read the processes every LOOK_S seconds. If a read fails, call `end` and return, because
        old figures would look current.
        """
        due = time.monotonic()
        while True:
            due += LOOK_S
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                self.read_processes()
            except Exception as error:
                self.failure = f"{type(error).__name__}: {error}"
                end()
                return

    def content(self, accept: str) -> tuple[str, bytes]:
        """Return the content type and the content for an Accept header. Results are cached until
        the next read.
        """
        with self._lock:
            found = self._known.get(accept)
            if found is None:
                found = self._exposed(self._counters, accept)
                if len(self._known) < MAX_CACHED:
                    self._known[accept] = found
            return found


class _MetricsServer(ThreadingHTTPServer):
    """Serves each connection in its own thread. The threads end with this process."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], endpoint: ServedCounters) -> None:
        self.endpoint = endpoint
        self.names = {address[0].lower(), "localhost"}
        self._open: dict[socket.socket, None] = {}  # oldest first
        self._lock = threading.Lock()
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
        self.address_family = found[0][0]
        super().__init__(address, _Handler)

    def accepts_host(self, host: str) -> bool:
        """Return whether a request may name this host.

        A page of another site could let its own name resolve to this machine (DNS rebinding), and
        read the counters under that name.
        """
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        name = name.strip("[]").lower()
        try:
            ip_address(name)
        except ValueError:
            is_local = ip_address(str(self.server_address[0]).partition("%")[0]).is_loopback
            return not is_local or name in self.names
        return True

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread. Above the connection limit, close the oldest connection.

        Idle clients thus cannot block a scraper.
        """
        with self._lock:
            oldest = next(iter(self._open)) if len(self._open) >= MAX_CONNECTIONS else None
            if oldest is not None:
                del self._open[oldest]
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._open[request] = None
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.pop(request, None)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors, such as a scraper that has disconnected."""


class _Handler(BaseHTTPRequestHandler):
    """Answers a scrape."""

    server: _MetricsServer
    timeout = MAX_REQUEST_S
    server_version = "queryprof"
    sys_version = ""

    def do_GET(self) -> None:
        """Send the counters. Send 404 for an unknown path, and 403 for another host name."""
        self._send_counters(with_content=True)

    def do_HEAD(self) -> None:
        """Send the headers of do_GET, without the content."""
        self._send_counters(with_content=False)

    def _send_counters(self, with_content: bool) -> None:
        if not self.server.accepts_host(self.headers.get("Host", "localhost")):
            self.send_error(403, "Forbidden", "Unknown Host header: use an IP address.")
            return
        if self.path.partition("?")[0] not in PATHS:
            self.send_error(404)
            return
        kind, content = self.server.endpoint.content(self.headers.get("Accept", ""))
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if with_content:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 http.server's name
        """Log nothing, because scrapes are frequent."""
