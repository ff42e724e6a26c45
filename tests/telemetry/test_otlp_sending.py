"""The sender retries, splits or drops a message, and prints the reason in one line."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from conftest import Run

pytestmark = pytest.mark.once
pytest.importorskip("opentelemetry.proto")

from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2  # noqa: E402
from telemetry.receiver import Receiver, receiving, sender  # noqa: E402
from telemetry.test_otlp import record  # noqa: E402

from queryprof.telemetry import otlp_sending  # noqa: E402
from queryprof.telemetry.otlp_sending import OtlpError, read_endpoint_settings  # noqa: E402


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def request_of(items: Any) -> Any:
    request = metrics_service_pb2.ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add()
    metric.name = "m"
    for item in items:
        metric.sum.data_points.add().as_int = item
    return request


@pytest.mark.parametrize("status", [429, 502, 503, 504])
@pytest.mark.repeats
def test_what_is_postponed_is_tried_again(receiver: Receiver, status: int) -> None:
    receiver.statuses = [(status, {"Retry-After": "7"}), (status, {})]
    one, _, waits = sender(receiver.url)
    one.send("/v1/metrics", [1], request_of)
    assert waits == [7.0, 2.0]
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(("times", "is_sent"), [(4, True), (5, False)])
def test_there_are_five_tries(receiver: Receiver, times: int, is_sent: bool) -> None:
    receiver.statuses = [(503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"})] * times
    one, _, waits = sender(receiver.url)
    if is_sent:
        one.send("/v1/metrics", [1], request_of)
    else:
        with pytest.raises(OtlpError, match="answered 503"):
            one.send("/v1/metrics", [1], request_of)
    assert waits == [0.0] * 4


def test_what_is_too_large_goes_in_halves(receiver: Receiver) -> None:
    receiver.statuses = [(413, {}), (413, {}), (200, {})]
    one, _, _ = sender(receiver.url)
    one.send("/v1/metrics", list(range(8)), request_of)
    assert [len(point.sum.data_points) for point in receiver.metrics] == [2, 2, 4]
    receiver.statuses = [(413, {})]
    with pytest.raises(OtlpError, match="answered 413"):
        one.send("/v1/metrics", [1], request_of)


def test_messages_have_at_most_so_many_bytes(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _, _ = sender(receiver.url)
    monkeypatch.setattr(otlp_sending, "MAX_BYTES", 60)
    one.send("/v1/metrics", list(range(8)), request_of)
    assert sum(len(point.sum.data_points) for point in receiver.metrics) == 8
    assert len(receiver.requests) > 1


def test_what_is_rejected_is_printed(receiver: Receiver) -> None:
    answer = metrics_service_pb2.ExportMetricsServiceResponse()
    answer.partial_success.rejected_data_points = 3
    answer.partial_success.error_message = "too old"
    receiver.answer = answer.SerializeToString()
    one, notes, _ = sender(receiver.url)
    one.send("/v1/metrics", [1, 2, 3], request_of)
    assert notes == [f"{receiver.url}/v1/metrics: rejected 3: too old"]


def test_the_variables_of_opentelemetry(queryprof: Run, receiver: Receiver) -> None:
    record()
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
        "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20abc, x=1",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "5000",
    }
    assert queryprof("fleet", "export", "--otlp", "env", "x.qprof", env=variables).returncode == 0
    assert receiver.headers[0]["Authorization"] == "Bearer abc"
    settings = read_endpoint_settings({"OTEL_EXPORTER_OTLP_TIMEOUT": "500"})
    assert (settings.endpoint, settings.timeout_s) == ("http://localhost:4318", 0.5)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"ENDPOINT": "ftp://x"}, "not an endpoint"),
        ({"ENDPOINT": "localhost:4318"}, "not an endpoint"),
        ({"ENDPOINT": "http://user:secret@x"}, "the endpoint: not an endpoint"),
        ({"ENDPOINT": "http://[::1"}, "not an endpoint"),
        ({"ENDPOINT": "http://127.0.0.1:99999"}, "not an endpoint"),
        ({"HEADERS": "content-length=5"}, "must be NAME=VALUE"),
        ({"HEADERS": "novalue"}, "must be NAME=VALUE"),
        ({"HEADERS": "a=b%0d%0aInjected: 1"}, "must be NAME=VALUE"),
        ({"TIMEOUT": "soon"}, "must be milliseconds"),
        ({"TIMEOUT": "0"}, "must be milliseconds"),
        ({"CERTIFICATE": "nothere.pem"}, "No such file"),
    ],
)
@pytest.mark.repeats
def test_variables_that_are_none(queryprof: Run, variables: dict[str, str], message: str) -> None:
    record()
    named = {f"OTEL_EXPORTER_OTLP_{name}": value for name, value in variables.items()}
    result = queryprof("fleet", "export", "--otlp", "env", "x.qprof", env=named)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def read_request(connection: socket.socket) -> None:
    """Read all of it: a connection closed earlier would be reset."""
    content = b""
    while b"\r\n\r\n" not in content:
        content += connection.recv(1 << 16)
    head, _, body = content.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(1 << 16)


@contextmanager
def answering(content: bytes | None) -> Iterator[str]:
    """Run an endpoint that gives this answer to any request, and closes. None: it never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        held: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    one, _ = listener.accept()
                except OSError:
                    return
                read_request(one)
                if content is None:
                    held.append(one)
                else:
                    one.sendall(content)
                    one.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        for one in held:
            one.close()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "timed out"),
        (b"", "without response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>", "is not an OTLP endpoint"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n", "answered 302"),
        (b"HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:1/\r\n\r\n", "answered 307"),
        (b"HTTP/1.1 401 Unauthorized\r\n\r\n", "answered 401"),
        (b"\xff\xfe garbage\r\n\r\n", "garbage|BadStatusLine|:"),
    ],
)
def test_endpoints_that_are_none(content: bytes | None, message: str) -> None:
    with answering(content) as url:
        one, _, waits = sender(url, timeout_s=0.3 if content is None else 600)
        with pytest.raises(OtlpError, match=message):
            one.send("/v1/metrics", [1], request_of)
        assert waits == []


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc",
    ],
)
def test_an_answer_of_success_that_breaks_off_is_success(answer: bytes) -> None:
    """A proxy may always cut it. If queryprof sent again, the endpoint would count twice."""
    with answering(answer) as url:
        one, notes, _ = sender(url)
        one.send("/v1/metrics", [1], request_of)
    assert notes == [f"{url}/v1/metrics: received the data, but its answer is incomplete"]


class Names(set[str]):
    """Records delivered messages in memory."""

    has = set.__contains__


def test_an_accepted_half_is_not_sent_again(receiver: Receiver) -> None:
    receiver.statuses = [(413, {}), (200, {}), (400, {})]
    one, _, _ = sender(receiver.url)
    delivered = Names()
    with pytest.raises(OtlpError, match="answered 400"):
        one.send("/v1/metrics", list(range(8)), request_of, delivered, "metrics-0")
    one.send("/v1/metrics", list(range(8)), request_of, delivered, "metrics-0")
    values = [point.as_int for one in receiver.metrics for point in one.sum.data_points]
    assert values == list(range(8))


@pytest.mark.parametrize("body", [b"{}", b"abc"])
def test_what_is_taken_is_not_sent_again(body: bytes) -> None:
    """The status is that of success, but the answer is invalid."""
    content = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + body
    with answering(content) as url:
        one, notes, _ = sender(url)
        one.send("/v1/metrics", [1], request_of)
    assert len(notes) == 1
    assert "but its answer is not protobuf" in notes[0]


@pytest.mark.parametrize("drip", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_an_answer_that_drips_is_ended(drip: bytes) -> None:
    """Each byte is in time, but the whole answer is not."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        is_over = threading.Event()

        def accept() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                read_request(connection)
                connection.sendall(drip)
                while not is_over.wait(0.02):
                    connection.sendall(drip if b"100" in drip else b"x")

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        one, _, _ = sender(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_s=0.3)
        with pytest.raises(OtlpError, match="timed out"):
            one.send("/v1/metrics", [1], request_of)
        is_over.set()
        thread.join()


def test_nobody_listens(queryprof: Run) -> None:
    record()
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    result = queryprof("fleet", "export", "--otlp", f"http://127.0.0.1:{port}", "x.qprof")
    assert result.returncode == 2
    assert result.stderr == (
        f"queryprof: http://127.0.0.1:{port}/v1/metrics: [Errno 111] Connection refused\n"
    )


def test_a_certificate_of_nobody(tmp_path: Path) -> None:
    import ssl

    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("localhost", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"https://localhost:{server.server_address[1]}"
    one, _, _ = sender(url)
    with pytest.raises(OtlpError, match="certificate verify failed"):
        one.send("/v1/metrics", [1], request_of)
    trusted, _, _ = sender(url, certificate=str(certificate))
    trusted.send("/v1/metrics", [1], request_of)
    server.shutdown()
    server.server_close()
    thread.join()
