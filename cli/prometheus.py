"""`queryprof prometheus`: an endpoint that Prometheus scrapes."""

from __future__ import annotations

import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import click

from queryprof.errors import QueryprofError

if TYPE_CHECKING:
    from queryprof.region.live import Watch
    from queryprof.telemetry.counters import Counters

LOOK_S = 5.0
"""From look to look, whatever is scraped."""

LONGEST_REQUEST_S = 10.0
PATHS = ("/", "/metrics")
MOST_KNOWN = 16
"""Formats that are asked for, of which the content is kept."""


@click.command()
@click.option(
    "--listen",
    default="127.0.0.1:9464",
    show_default=True,
    metavar="HOST:PORT",
    help="Where it listens; port 0 is any free one.",
)
@click.argument("target", required=False)
def prometheus(listen: str, target: str | None) -> None:
    """Serves counters of what recorded programs do, for Prometheus.

    TARGET is the id of a process, a trace that is being recorded, or a directory of such; without,
    all programs of this user. It looks every 5 seconds, as `top` does: the programs take no notice.
    """
    from queryprof.cli.output import print_message
    from queryprof.cli.top import chosen
    from queryprof.region.live import Watch

    address = _address(listen)
    watch = Watch(chosen(target, "prometheus"))
    endpoint = Endpoint(watch)
    try:
        server = _Server(address, endpoint)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise QueryprofError(f"--listen {listen}: {reason}") from error
    if not endpoint.look() and target:
        print_message(f"{target}: nothing that runs is recorded there yet")
    threading.Thread(target=endpoint.look_again, name="looks", daemon=True).start()
    host, port = server.server_address[:2]
    shown = f"[{host!s}]" if ":" in str(host) else str(host)
    print_message(f"http://{shown}:{port}/metrics")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{listen!r} is no HOST:PORT", param_hint="--listen")
    return host.strip("[]"), int(port)


class Endpoint:
    """What is served: the counters, as they were at the last look."""

    def __init__(self, watch: Watch) -> None:
        from queryprof.cli.fleet_extra import extra

        with extra("prometheus"):
            from queryprof.telemetry import prometheus_metrics
        from queryprof.telemetry.counters import Counters

        self._exposed = prometheus_metrics.exposed
        self._watch = watch
        self._counters: Counters = Counters()
        self._lock = threading.Lock()
        self._known: dict[str, tuple[str, bytes]] = {}

    def look(self) -> int:
        """Looks at the processes; returns how many there are."""
        with self._lock:
            found = self._watch.look()
            self._counters.add(found)
            self._known.clear()
            return len(found)

    def look_again(self) -> None:
        """Looks for ever."""
        due = time.monotonic()
        while True:
            due += LOOK_S
            time.sleep(max(0.0, due - time.monotonic()))
            self.look()

    def content(self, accept: str) -> tuple[str, bytes]:
        """The content's type and the content: made once for each look and format."""
        with self._lock:
            found = self._known.get(accept)
            if found is None:
                found = self._exposed(self._counters, accept)
                if len(self._known) < MOST_KNOWN:
                    self._known[accept] = found
            return found


class _Server(ThreadingHTTPServer):
    """A thread for each connection; none outlives this process."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
        self.address_family = found[0][0]
        super().__init__(address, _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A scraper that has gone is no error."""


class _Handler(BaseHTTPRequestHandler):
    """Answers a scrape."""

    server: _Server
    timeout = LONGEST_REQUEST_S
    server_version = "queryprof"
    sys_version = ""

    def do_GET(self) -> None:
        """The counters, or 404."""
        if self.path.partition("?")[0] not in PATHS:
            self.send_error(404)
            return
        kind, content = self.server.endpoint.content(self.headers.get("Accept", ""))
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 http.server's name
        """Nothing: a scrape every few seconds is no news."""
