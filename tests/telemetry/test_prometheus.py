"""`queryprof fleet prometheus`: the scraped counters equal the programs' work."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from conftest import QUERYPROF, Run

pytestmark = pytest.mark.once
pytest.importorskip("prometheus_client")

from prometheus_client.openmetrics.parser import (  # noqa: E402
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families  # noqa: E402

from queryprof.cli.prometheus import ServedCounters  # noqa: E402
from queryprof.fleet.names import identifier  # noqa: E402
from queryprof.model.live import Activity, ProcessActivity  # noqa: E402
from queryprof.region.live import ActivityReader, trace_path_filter  # noqa: E402
from queryprof.telemetry.counters import MetricSeries  # noqa: E402
from queryprof.telemetry.prometheus_metrics import exposition  # noqa: E402

OPEN = "application/openmetrics-text; version=1.0.0"
WORKS = """
import os, sqlite3, sys, time
import queryprof
from queryprof.core import _core

queryprof.install(sys.argv[1], window=sys.argv[2] or None)
connection = sqlite3.connect(":memory:")
print("ready", flush=True)
for line in sys.stdin:
    for number in range(int(line.split()[0])):
        connection.execute("SELECT ?", (number,)).fetchone()
    if "border" in line:
        _core.end_window(time.time_ns())
    print("done", flush=True)
"""

STREAMS = """
import sqlite3, sys
import queryprof

queryprof.install(sys.argv[1])
connection = sqlite3.connect(":memory:")
connection.execute("CREATE TABLE t (a)")
connection.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(5000)])
print("ready", flush=True)
for line in sys.stdin:
    if line.startswith("1"):
        cursor = connection.execute("SELECT a FROM t WHERE a % 2 = 0")
    else:
        cursor.fetchall()
    print("done", flush=True)
"""

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Program:
    """A recorded program that executes statements on request."""

    def __init__(self, trace: str, window: str = "", work: str = WORKS) -> None:
        environment = {**os.environ, "QUERYPROF_SERVICE": "shop", "QUERYPROF_VERSION": "7"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", work, trace, window],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._read()

    def _read(self) -> None:
        assert self.process.stdout
        assert self.process.stdout.readline()

    def works(self, executions: int, then: str = "") -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{executions} {then}\n")
        self.process.stdin.flush()
        self._read()

    def end(self) -> None:
        self.process.communicate()


def samples(text: str) -> Samples:
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def calls(found: Samples) -> float:
    return sum(value for (name, _), value in found.items() if name == "queryprof_calls_total")


def executed(found: Samples) -> list[float]:
    """Return the calls of SELECT ?."""
    statement = identifier("SELECT ?")
    return [
        value
        for (name, labels), value in found.items()
        if name == "queryprof_calls_total" and dict(labels)["statement_id"] == statement
    ]


def scraped(endpoint: ServedCounters) -> Samples:
    endpoint.read_processes()
    return samples(endpoint.content("")[1].decode())


@pytest.mark.slow
def test_counters_rise_while_processes_come_and_end_and_end_windows() -> None:
    """Every call is counted, including calls in windows that end between two scrapes."""
    trace = os.path.abspath("shop.qprof")
    endpoint = ServedCounters(ActivityReader(trace_path_filter(os.path.dirname(trace))))
    before: Samples = {}
    expected = 0
    programs: list[Program] = []
    for step in range(100):
        if step % 20 == 0:
            programs.append(Program(trace.replace("shop", f"shop{step}"), "1h"))
            scraped(endpoint)
        for program in programs[-2:]:
            program.works(5, "border" if step % 3 == 0 else "")
            expected += 5
        if step % 20 == 19 and len(programs) > 2:
            scraped(endpoint)
            programs[-3].end()
        now = scraped(endpoint)
        for key, value in before.items():
            if key[0].endswith(("_total", "_bucket", "_count")):
                assert now[key] >= value
        before = now
    for program in programs:
        program.end()
    assert executed(before) == [2 * expected]  # an execute and a fetch each
    labels = {"service": "shop", "version": "7"}
    assert before["queryprof_processes", tuple(sorted(labels.items()))] >= 1


HOSTILE = ('SELECT "\n\\', "\0\x1b[31m\x07", "SELECT \udcff", "x" * 10**6, "\u202e", "{}=,", "")


def test_hostile_texts_are_parsed_by_both_parsers() -> None:
    counters = MetricSeries()
    activities = [Activity(text, (), "execute", 1, 10, 10, 1, 1) for text in HOSTILE]
    counters.add(
        [ProcessActivity(1, (), "", False, 1, tuple(activities), (), (), "a\nb\udcff", '"7\\')]
    )
    kind, content = exposition(counters, "")
    assert kind.startswith("text/plain")
    assert calls(samples(content.decode())) == len(HOSTILE)
    kind, content = exposition(counters, OPEN)
    assert kind.startswith("application/openmetrics-text")
    families = {one.name: one for one in openmetrics_families(content.decode())}
    texts = [one.labels["statement"] for one in families["queryprof_statement"].samples]
    assert len(texts) == len(HOSTILE)
    assert all(len(text) <= 120 and text.isprintable() for text in texts)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """Run an endpoint. The value is its URL."""
    with subprocess.Popen(
        [QUERYPROF, "fleet", "prometheus", "--listen", "127.0.0.1:0", *arguments],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        line = next(one for one in process.stderr if "http" in one)
        try:
            yield line.removeprefix("queryprof: ").strip()
        finally:
            process.terminate()


def fetched(url: str, accept: str = "") -> tuple[str, str]:
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def test_a_scrape() -> None:
    program = Program("x.qprof")
    program.works(50)
    with serving(str(program.process.pid)) as url:
        kind, text = fetched(url)
        assert kind.startswith("text/plain")
        assert 0 < calls(samples(text)) <= 101
        kind, text = fetched(url, OPEN)
        assert kind.startswith("application/openmetrics-text")
        assert text.endswith("# EOF\n")
        with pytest.raises(urllib.error.HTTPError, match="404") as missing:
            fetched(url.replace("/metrics", "/other"))
        missing.value.close()
        with ThreadPoolExecutor(16) as pool:
            same = set(pool.map(lambda _: fetched(url)[1], range(500)))
        assert len(same) <= 3  # a look every five seconds
    program.end()


def test_of_a_process_and_of_none() -> None:
    program = Program("x.qprof")
    program.works(5)
    with serving(str(program.process.pid)) as url:
        assert calls(samples(fetched(url)[1])) > 0
    with serving("nothing-is-recorded-here/") as url:
        assert calls(samples(fetched(url)[1])) == 0
    program.end()


@pytest.mark.parametrize(
    "listen", ["9464", "127.0.0.1:x", "127.0.0.1:70000", ":1", "nowhere.invalid:0"]
)
def test_an_address_that_is_none(queryprof: Run, listen: str) -> None:
    result = queryprof("fleet", "prometheus", "--listen", listen)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1


def test_a_port_that_is_taken(queryprof: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = queryprof("fleet", "prometheus", "--listen", f"127.0.0.1:{port}")
    assert result.returncode == 2
    assert result.stderr == f"queryprof: --listen 127.0.0.1:{port}: Address already in use\n"


def test_no_such_process(queryprof: Run) -> None:
    result = queryprof("fleet", "prometheus", "999999999")
    assert result.returncode == 2
    assert result.stderr == "queryprof: prometheus: no running process 999999999\n"


@pytest.mark.slow
def test_promtool_has_nothing_to_say() -> None:
    promtool = shutil.which("promtool") or pytest.skip("promtool is not here (Debian: prometheus)")
    program = Program("x.qprof")
    program.works(50)
    with serving() as url:
        text = fetched(url)[1]
    program.end()
    result = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.slow
def test_a_real_prometheus_scrapes_it() -> None:
    prometheus = shutil.which("prometheus") or pytest.skip("Prometheus is not here")
    program = Program("x.qprof")
    port = free_port()
    with serving() as url:
        target = urllib.parse.urlsplit(url).netloc
        Path("prometheus.yml").write_text(
            "global: {scrape_interval: 1s}\n"
            f"scrape_configs: [{{job_name: q, static_configs: [{{targets: ['{target}']}}]}}]\n"
        )
        with subprocess.Popen(
            [
                prometheus,
                "--config.file=prometheus.yml",
                "--storage.tsdb.path=data",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as server:
            try:
                query = (
                    "rate(queryprof_seconds_total[1m]) * on(statement_id) group_left(statement)"
                    " queryprof_statement_info"
                )
                found: list[dict[str, dict[str, str]]] = []
                for _ in range(120):
                    program.works(2000)
                    found = answer_of(port, query)
                    if any(one["metric"].get("statement") == "SELECT ?" for one in found):
                        break
                    time.sleep(0.5)
                rows = [one for one in found if one["metric"].get("statement") == "SELECT ?"]
                assert {row["metric"]["service"] for row in rows} == {"shop"}
            finally:
                server.terminate()
    program.end()


def answer_of(port: int, query: str) -> list[dict[str, dict[str, str]]]:
    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    try:
        with urllib.request.urlopen(url) as answer:
            found: list[dict[str, dict[str, str]]] = json.load(answer)["data"]["result"]
            return found
    except (OSError, urllib.error.URLError):
        return []


def asked(port: int, request: str, *headers: str) -> str:
    """Return the answer to a request, as text."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        lines = [f"{request} HTTP/1.1", *headers, "Connection: close", "", ""]
        connection.sendall("\r\n".join(lines).encode())
        answer = b""
        while some := connection.recv(65536):
            answer += some
    return answer.decode()


@pytest.fixture
def served() -> Iterator[int]:
    """Run an endpoint on this machine's own address. The value is its port."""
    command = [QUERYPROF, "fleet", "prometheus", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        yield int(process.stderr.readline().rpartition(":")[2].partition("/")[0])
        process.kill()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("localhost:9464", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:9464", 200),
        ("evil.example:9464", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example:80", 403),
        ("", 403),
    ],
)
@pytest.mark.repeats
def test_only_a_name_of_this_machine_is_answered(served: int, host: str, status: int) -> None:
    """A page of another site can resolve its own name to this machine (DNS rebinding)."""
    answer = asked(served, "GET /metrics", f"Host: {host}")
    assert int(answer.split()[1]) == status
    assert ("queryprof_calls" in answer) == (status == 200)


def test_head_and_versions_that_are_no_numbers_are_answered(served: int) -> None:
    head = asked(served, "HEAD /metrics", "Host: localhost")
    assert head.startswith("HTTP/1.0 200")
    assert head.partition("\r\n\r\n")[2] == ""
    for accept in ("application/openmetrics-text; version=x", "text/plain; version=", "*/*;q=z"):
        answer = asked(served, "GET /metrics", "Host: localhost", f"Accept: {accept}")
        assert answer.startswith("HTTP/1.0 200")


def test_clients_that_send_nothing_keep_no_scraper_away(served: int) -> None:
    idle = [socket.create_connection(("127.0.0.1", served), timeout=20) for _ in range(200)]
    assert asked(served, "GET /metrics", "Host: localhost").startswith("HTTP/1.0 200")
    for connection in idle:
        connection.close()


def test_an_endpoint_whose_looks_fail_ends() -> None:
    endpoint = ServedCounters(ActivityReader(pids={0}))
    ended: list[str] = []

    def fail() -> int:
        raise RuntimeError("no more")

    endpoint.read_processes = fail  # type: ignore[method-assign]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("queryprof.cli.prometheus.LOOK_S", 0.0)
        endpoint.read_repeatedly(lambda: ended.append("ended"))
    assert ended == ["ended"]
    assert endpoint.failure == "RuntimeError: no more"
