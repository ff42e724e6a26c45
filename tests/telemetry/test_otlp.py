"""The OpenTelemetry protocol: a receiver has the same data as the trace."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from math import ceil, log2
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import queryprof as package
from conftest import Run

pytestmark = pytest.mark.once
pytest.importorskip("opentelemetry.proto")

from telemetry.receiver import Receiver, receiving, sender, values  # noqa: E402

from queryprof.analysis.histogram import bucket_bounds, percentile  # noqa: E402
from queryprof.collect.reader import read_profile  # noqa: E402
from queryprof.core import _core  # noqa: E402
from queryprof.telemetry import otlp_export, otlp_metrics  # noqa: E402
from queryprof.telemetry.otlp_export import OtlpExport  # noqa: E402
from queryprof.telemetry.otlp_metrics import exponential_bucket  # noqa: E402
from queryprof.telemetry.otlp_names import statement_summary  # noqa: E402
from queryprof.telemetry.otlp_sending import RejectedError  # noqa: E402


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def record(path: str = "x.qprof", work: int = 30) -> None:
    import sqlite3

    connection = sqlite3.connect("app.db")
    package.install(path)
    connection.execute("CREATE TABLE IF NOT EXISTS purchase (id INTEGER PRIMARY KEY, day)")
    with package.span("GET /orders"):
        for number in range(work):
            sql = "SELECT id FROM purchase WHERE day = ?"
            connection.execute(sql, (f"secret {number}",)).fetchall()
        with pytest.raises(sqlite3.OperationalError):
            connection.execute("SELECT nothing FROM purchase")
    connection.commit()
    package.uninstall()
    connection.close()


def export(queryprof: Run, receiver: Receiver, *arguments: str, **options: Any) -> Any:
    return queryprof("fleet", "export", "--otlp", receiver.url, *arguments, **options)


def test_a_receiver_has_what_the_trace_has(queryprof: Run, receiver: Receiver) -> None:
    record()
    result = export(queryprof, receiver, "x.qprof")
    assert result.returncode == 0, result.stderr
    profile = read_profile("x.qprof")
    points = receiver.points("db.client.operation.duration")
    by_id = {values(one)["queryprof.statement.id"]: one for one in points}
    assert len(by_id) == len(points)
    executions = 0
    for statement in {one.statement for one in profile.aggregates}:
        some = [one for one in profile.aggregates if one.statement == statement]
        histogram: Counter[int] = Counter()
        for one in some:
            histogram.update(dict(one.histogram))
        if not histogram:
            continue
        point = by_id[
            otlp_metrics.AttributeNames(profile, False).statement_attributes(statement, ())[
                "queryprof.statement.id"
            ]
        ]
        assert point.count == sum(histogram.values())
        assert point.sum == pytest.approx(sum(one.total_ns for one in some) / 1e9)
        longest_ns = max(one.execution_max_ns for one in some)
        assert point.max == pytest.approx(longest_ns / 1e9)
        counts = {
            point.positive.offset + place: count
            for place, count in enumerate(point.positive.bucket_counts)
            if count
        }
        expected: Counter[int] = Counter()
        for bucket, count in histogram.items():
            expected[exponential_bucket(bucket)] += count  # type: ignore[index]
        assert counts == expected
        ours_ns = percentile(histogram, 0.95, longest_ns)
        assert ours_ns
        rank, seen = ceil(0.95 * point.count), 0
        for index in sorted(counts):
            seen += counts[index]
            if seen >= rank:
                assert abs(log2(2 ** ((index + 0.5) / 16) / (ours_ns / 1e9))) <= 2 / 16
                break
        executions += point.count
    assert executions >= 31
    steps = sum(one.vm_steps for one in profile.aggregates)
    assert sum(one.as_int for one in receiver.points("queryprof.vm_steps")) == steps
    (error,) = receiver.points("queryprof.errors")
    assert (error.as_int, values(error)["error.type"]) == (1, "sqlite3.OperationalError")


def test_a_slow_request_is_a_trace_with_its_queries(queryprof: Run, receiver: Receiver) -> None:
    record()
    for _ in range(2):  # sent twice, it is the same
        assert export(queryprof, receiver, "x.qprof").returncode == 0
    ids = Counter((one.trace_id, one.span_id) for one in receiver.spans)
    assert set(ids.values()) == {2}
    profile = read_profile("x.qprof")
    assert len(ids) == sum(1 + len(one.runs) for one in profile.slow_spans)
    (root,) = {one.span_id: one for one in receiver.spans if not one.parent_span_id}.values()
    assert (root.name, root.kind) == ("GET /orders", 2)
    runs = [one for one in receiver.spans if one.parent_span_id == root.span_id]
    assert {one.kind for one in runs} == {3}
    assert "SELECT purchase" in {one.name for one in runs}
    many = {values(one).get("db.operation.batch.size") for one in runs}
    assert 30 in many
    for one in runs:
        assert root.start_time_unix_nano <= one.start_time_unix_nano <= one.end_time_unix_nano


def test_no_value_and_no_text_leaves(queryprof: Run, receiver: Receiver) -> None:
    record()
    assert export(queryprof, receiver, "x.qprof").returncode == 0
    content = b"".join(one.SerializeToString() for _, one in receiver.requests)
    assert b"secret" not in content
    assert b"WHERE day" not in content
    assert os.getcwd().encode() not in content
    receiver.requests.clear()
    assert export(queryprof, receiver, "--statement-text", "x.qprof").returncode == 0
    content = b"".join(one.SerializeToString() for _, one in receiver.requests)
    assert b"WHERE day = ?" in content
    assert b"secret" not in content


def test_the_resource_has_the_deployments_names(queryprof: Run, receiver: Receiver) -> None:
    code = "import sqlite3; sqlite3.connect(':memory:').execute('SELECT 1')"
    names = {
        "QUERYPROF_SERVICE": "shop",
        "QUERYPROF_VERSION": "7",
        "QUERYPROF_ENVIRONMENT": "prod",
    }
    run = queryprof("run", "--no-report", "-o", "x.qprof", "-c", code, env=names)
    assert run.returncode == 0
    assert export(queryprof, receiver, "x.qprof").returncode == 0
    (_, request), *_ = receiver.requests
    found = values(request.resource_metrics[0].resource)
    assert (found["service.name"], found["service.version"]) == ("shop", "7")
    assert found["deployment.environment.name"] == "prod"
    assert found["host.name"] == os.uname().nodename


@pytest.mark.slow
def test_windows_are_deltas_or_sums_on_request(queryprof: Run, receiver: Receiver) -> None:
    import sqlite3

    connection = sqlite3.connect(":memory:")
    package.install("x.qprof", window="1h")
    now = time.time_ns()
    for number in range(1, 4):
        for _ in range(number):
            connection.execute("SELECT ?", (1,))
        _core.end_window(now + number * 3600 * 10**9)
    package.uninstall()
    connection.close()
    for preference, expected in (("delta", [1, 2, 3]), ("cumulative", [1, 3, 6])):
        receiver.requests.clear()
        variable = {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": preference}
        assert export(queryprof, receiver, "x.qprof", env=variable).returncode == 0
        points = receiver.points("db.client.operation.duration")
        assert [one.count for one in points if values(one)["db.query.summary"] == "SELECT"] == (
            expected
        )
        kinds = {
            one.exponential_histogram.aggregation_temporality
            for one in receiver.metrics
            if one.HasField("exponential_histogram")
        }
        assert kinds == {1 if preference == "delta" else 2}


def test_what_ship_sends(queryprof: Run, receiver: Receiver) -> None:
    pytest.importorskip("pyarrow")
    from fleet.test_ship import record as record_windows

    os.mkdir("place")
    count = record_windows("place/a.qprof", 2)
    receiver.statuses = [(500, {})]
    ship = ("fleet", "ship", "--once", "--otlp", receiver.url, "place")
    assert queryprof(*ship).returncode == 2
    result = queryprof(*ship)
    assert result.returncode == 0, result.stderr
    points = receiver.points("db.client.operation.duration")
    assert sum(one.count for one in points) == count + 1  # and it connects
    assert os.listdir("place") == []


@pytest.mark.slow
def test_ship_sends_to_both_each_once(queryprof: Run, receiver: Receiver) -> None:
    pytest.importorskip("pyarrow")
    from fleet.test_ship import executions
    from fleet.test_ship import record as record_windows

    os.mkdir("place")
    count = record_windows("place/a.qprof", 2)
    ship = ("fleet", "ship", "--once", "--otlp", receiver.url, "--to", "store", "place")
    receiver.statuses = [(500, {})]
    assert queryprof(*ship).returncode == 2
    assert executions("store") == count  # the store does not wait
    assert receiver.requests == []
    assert queryprof(*ship).returncode == 0
    assert os.listdir("place") == []
    assert executions("store") == count
    points = receiver.points("db.client.operation.duration")
    assert sum(one.count for one in points) == count + 1


def test_an_endpoint_that_takes_no_traces(queryprof: Run, receiver: Receiver) -> None:
    """Its metrics are sent once, and the recordings are removed."""
    pytest.importorskip("pyarrow")
    os.mkdir("place")
    code = (
        "import sqlite3, queryprof; c = sqlite3.connect(':memory:');"
        " queryprof.install('place/x.qprof', window='1h')\n"
        "with queryprof.span('GET /'): c.execute('SELECT 1')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    receiver.statuses = [(200, {}), (404, {})]
    result = queryprof("fleet", "ship", "--once", "--otlp", receiver.url, "place")
    assert result.returncode == 1
    assert "not sent, and will not be retried: " in result.stderr
    assert "window sent" not in result.stderr
    assert os.listdir("place") == []
    (point,) = receiver.points("db.client.operation.duration")
    assert point.count == 1


def test_an_endpoint_that_takes_no_metrics_gets_the_spans(receiver: Receiver) -> None:
    record()
    receiver.statuses = [(404, {}), (200, {})]
    one, _, _ = sender(receiver.url)
    export = OtlpExport(one, has_text=False, is_cumulative=False)
    with pytest.raises(RejectedError, match="answered 404"):
        export.send(read_profile("x.qprof"))
    assert receiver.spans
    assert not receiver.metrics


@pytest.mark.parametrize("bucket", range(700))
def test_a_bucket_goes_where_its_middle_lies(bucket: int) -> None:
    low, high = bucket_bounds(bucket)
    index = exponential_bucket(bucket)
    if not low:
        assert index is None
        return
    assert index is not None
    middle_s = (low + high) / 2 / 1e9
    assert 2 ** (index / 16) < middle_s * (1 + 1e-12)
    assert middle_s <= 2 ** ((index + 1) / 16) * (1 + 1e-12)


@given(st.text())
def test_a_summary_of_any_text(text: str) -> None:
    assert len(statement_summary(text)) <= 255


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT a FROM t JOIN u ON t.i = u.i WHERE a = ?", "SELECT t u"),
        ("INSERT INTO t VALUES (?)", "INSERT t"),
        ("UPDATE t SET a = ?", "UPDATE t"),
        ("DELETE FROM t", "DELETE t"),
        ("SELECT a FROM (SELECT b FROM u)", "SELECT u"),
        ("CREATE TABLE t (a)", "CREATE t"),
        ('SELECT a FROM "my table"', 'SELECT "my table"'),
        ("(connect)", "connect"),
        ("(select pw from person where a = 5) union all (select 1)", "SELECT person"),
        ("BEGIN", "BEGIN"),
        ("", ""),
    ],
)
def test_a_summary(statement: str, expected: str) -> None:
    assert statement_summary(statement) == expected


HOSTILE = ("SELECT \udcff", "x" * 10**6, "\0", "'; DROP TABLE t; --", "SELECT \u202e")


def test_hostile_texts_are_sent(receiver: Receiver) -> None:
    from analysis.by_hand import aggregate, profile_of

    profile = profile_of(*(aggregate(text) for text in HOSTILE))
    one, _, _ = sender(receiver.url)
    OtlpExport(one, has_text=True, is_cumulative=False).send(profile)
    assert len(receiver.points("db.client.operation.duration")) == len(HOSTILE)


def test_many_statements_are_few_points(receiver: Receiver) -> None:
    from analysis.by_hand import aggregate, profile_of

    profile = profile_of(*(aggregate(f"S{n}", ns=1000 + n) for n in range(300)))
    one, _, _ = sender(receiver.url)
    OtlpExport(one, has_text=False, is_cumulative=False).send(profile)
    points = receiver.points("db.client.operation.duration")
    assert len(points) == 201
    others = [point for point in points if values(point)["db.query.summary"] == "other"]
    assert [point.count for point in others] == [100]


COLLECTOR = Path(__file__).parent / "collector"


@pytest.mark.slow
def test_a_real_collector_counts_the_same(
    queryprof: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not os.path.exists(go):
        pytest.skip("no Go here to build a Collector")
    folder = tmp_path_factory.mktemp("collector")
    shutil.copytree(COLLECTOR, folder, dirs_exist_ok=True)
    for command in (["mod", "tidy"], ["build", "-o", "collector", "."]):
        built = subprocess.run(
            [go, *command], cwd=folder, capture_output=True, text=True, check=False
        )
        if built.returncode:
            pytest.skip(f"the Collector cannot be built: {built.stderr[-300:]}")
    record(work=500)
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    settings = (COLLECTOR / "collector.yaml").read_text().replace("PORT", str(port))
    Path("collector.yaml").write_text(settings)
    with (
        open("collector.log", "w") as log,
        subprocess.Popen(
            [folder / "collector", "--config", "collector.yaml"], stdout=log, stderr=log
        ) as collector,
    ):
        while True:
            assert collector.poll() is None, Path("collector.log").read_text()[-500:]
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
        result = queryprof("fleet", "export", "--otlp", f"http://127.0.0.1:{port}", "x.qprof")
        assert result.returncode == 0, result.stderr
        collector.terminate()
        collector.wait()
    text = Path("collector.log").read_text()
    profile = read_profile("x.qprof")
    spans = sum(1 + len(one.runs) for one in profile.slow_spans)
    assert len(re.findall(r"^Span #\d+", text, re.MULTILINE)) == spans
    histograms = text.split("Name: db.client.operation.duration")[1].split("Metric #")[0]
    counts = [int(found) for found in re.findall(r"^Count: (\d+)", histograms, re.MULTILINE)]
    executions = sum(n for one in profile.aggregates for n in one.histogram.values())
    assert sum(counts) == executions


def test_a_cumulative_value_begins_where_the_first_one_began() -> None:
    """A receiver treats a later begin as a reset."""
    early = otlp_metrics.MetricPoint("queryprof.rows", 0, (), 10, 20, 3)
    late = otlp_metrics.MetricPoint("queryprof.rows", 0, (), 20, 30, 4)
    for one, other in ((early, late), (late, early)):
        joined = otlp_export._add_point(one, other)
        assert (joined.start_unix_ns, joined.end_unix_ns, joined.value) == (10, 30, 7)


def test_a_cumulative_value_keeps_the_longest() -> None:
    """It has all calls so far, so its longest call is that of any of its parts."""
    short, long = (
        otlp_metrics.DurationHistogram({0: 1}, 0, 5, 5),
        otlp_metrics.DurationHistogram({1: 1}, 0, 9, 9),
    )
    for one, other in ((short, long), (long, short)):
        before = otlp_metrics.MetricPoint(otlp_metrics.DURATION, 0, (), 10, 20, one)
        after = otlp_metrics.MetricPoint(otlp_metrics.DURATION, 0, (), 20, 30, other)
        joined = otlp_export._add_point(before, after).value
        assert joined == otlp_metrics.DurationHistogram({0: 1, 1: 1}, 0, 14, 9)
