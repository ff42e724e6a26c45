"""A real object store on this machine: versitygw, which speaks S3."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conftest import Run

pytestmark = [pytest.mark.once, pytest.mark.slow]
pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

from fleet.test_ship import executions, record  # noqa: E402  needs pyarrow

from queryprof.fleet.location import CannotWriteError, LocationError, ObjectStore  # noqa: E402

SERVER = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "testsecret"}


class Store(NamedTuple):
    """A server's bucket: its URL, and the directory in which it keeps its objects."""

    url: str
    directory: Path


@pytest.fixture(scope="session")
def versitygw(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Build the server with Go, once. This takes a minute."""
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not os.path.exists(go):
        pytest.skip("no Go here to build a server of objects")
    folder = tmp_path_factory.mktemp("bin")
    environment = {**os.environ, "GOBIN": str(folder)}
    built = subprocess.run(
        [go, "install", SERVER], env=environment, capture_output=True, text=True, check=False
    )
    if built.returncode:
        pytest.skip(f"the server cannot be built: {built.stderr[-200:]}")
    return str(folder / "versitygw")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def serving(versitygw: str, port: int) -> Iterator[None]:
    environment = {**os.environ, "ROOT_ACCESS_KEY": "test", "ROOT_SECRET_KEY": "testsecret"}
    with subprocess.Popen(
        [versitygw, "--port", f"127.0.0.1:{port}", "posix", "objects"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        while True:
            assert server.poll() is None
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
        try:
            yield
        finally:
            server.terminate()


@pytest.fixture
def store(versitygw: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    os.makedirs("objects/fleet")
    port = free_port()
    with serving(versitygw, port):
        yield Store(url_of(port), Path("objects/fleet/shop"))


def url_of(port: int, bucket: str = "fleet") -> str:
    return f"s3://{bucket}/shop?endpoint_override=127.0.0.1%3A{port}&scheme=http&region=us-east-1"


def calls(result: subprocess.CompletedProcess[str]) -> int:
    return sum(int(one["calls"]) for one in json.loads(result.stdout))


def test_from_the_program_to_the_answer(queryprof: Run, store: Store) -> None:
    os.mkdir("place")
    count = record("place/a.qprof", 3) + record("place/b.qprof", 2, "killed")
    result = queryprof("fleet", "ship", "--to", store.url, "--once", "place")
    assert result.returncode == 0, result.stderr
    assert executions(str(store.directory)) == count
    assert os.listdir("place") == []
    ask = ("--by", "host", "--format", "json")
    found = queryprof("fleet", "report", store.url, *ask)
    assert found.returncode == 0, found.stderr
    local = queryprof("fleet", "report", str(store.directory), *ask)
    assert json.loads(found.stdout) == json.loads(local.stdout)
    assert Path("cache/queryprof/fleet").stat().st_mode & 0o777 == 0o700
    compacted = queryprof("fleet", "compact", store.url)
    assert compacted.returncode == 0, compacted.stderr
    assert calls(queryprof("fleet", "report", store.url, *ask)) == calls(found)


def test_copies_are_made_once(queryprof: Run, store: Store) -> None:
    os.mkdir("place")
    record("place/a.qprof", 2)
    assert queryprof("fleet", "ship", "--to", store.url, "--once", "place").returncode == 0
    ask = ("--by", "host", "--format", "json")
    first = queryprof("fleet", "report", store.url, *ask)
    inodes = {path: path.stat().st_ino for path in Path("cache").rglob("*.parquet")}
    assert inodes
    assert queryprof("fleet", "report", store.url, *ask).stdout == first.stdout
    assert {path: path.stat().st_ino for path in Path("cache").rglob("*.parquet")} == inodes
    shutil.rmtree(store.directory)
    gone = queryprof("fleet", "report", store.url, *ask)
    assert gone.returncode == 2  # a copy alone is no answer


@pytest.mark.parametrize(
    ("keys", "bucket"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "fleet"),
        ({"AWS_ACCESS_KEY_ID": "wrong"}, "fleet"),
        ({}, "nothere"),
    ],
)
def test_a_store_that_refuses(
    queryprof: Run, store: Store, keys: dict[str, str], bucket: str
) -> None:
    os.mkdir("place")
    count = record("place/a.qprof", 1)
    url = store.url.replace("s3://fleet/", f"s3://{bucket}/")
    for command in (
        ["fleet", "ship", "--once", "--to", url, "place"],
        ["fleet", "report", url],
    ):
        result = queryprof(*command, env=keys)
        assert result.returncode == 2
        assert result.stderr.count("\n") == 1
        assert "testsecret" not in result.stderr
    assert queryprof("fleet", "ship", "--once", "--to", store.url, "place").returncode == 0
    assert executions(str(store.directory)) == count


def test_a_server_that_is_away(queryprof: Run, versitygw: str) -> None:
    os.makedirs("objects/fleet")
    os.mkdir("place")
    count = record("place/a.qprof", 1)
    port = free_port()
    ship = ("fleet", "ship", "--once", "--to", url_of(port), "place")
    result = queryprof(*ship, env=KEYS)
    assert result.returncode == 2
    assert "cannot be written" in result.stderr
    with serving(versitygw, port):
        assert queryprof(*ship, env=KEYS).returncode == 0
    assert executions("objects/fleet/shop") == count


class CutOff:
    """A proxy that ends a connection after this many bytes from the client."""

    def __init__(self, target: int, most_bytes: int) -> None:
        import threading

        self._target, self._most = target, most_bytes
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        import threading

        while True:
            try:
                one, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass_on, args=(one,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        import select

        left = self._most
        with client, socket.create_connection(("127.0.0.1", self._target)) as server:
            while left > 0:
                ready, _, _ = select.select([client, server], [], [])
                for one in ready:
                    data = one.recv(min(65536, left) if one is client else 65536)
                    if not data:
                        return
                    if one is client:
                        left -= len(data)
                        server.sendall(data)
                    else:
                        client.sendall(data)

    def close(self) -> None:
        self._listener.close()


def test_a_put_that_is_cut_in_the_middle_is_not_there(store: Store) -> None:
    target = int(store.url.partition("%3A")[2].partition("&")[0])
    between = CutOff(target, 20_000)
    cut = ObjectStore(url_of(between.port))
    with pytest.raises(CannotWriteError):
        cut.put("aggregate/service=shop/date=2026-11-01/a.parquet", os.urandom(200_000))
    between.close()
    whole = ObjectStore(store.url)
    assert list(whole.entries("aggregate")) == []
    whole.put("aggregate/service=shop/date=2026-11-01/a.parquet", b"x" * 200_000)
    (entry,) = whole.entries("aggregate")
    assert (entry.name, entry.bytes) == (
        "aggregate/service=shop/date=2026-11-01/a.parquet",
        200_000,
    )
    assert whole.get(entry.name) == b"x" * 200_000
    whole.remove(entry.name)
    whole.remove(entry.name)
    assert list(whole.entries("aggregate")) == []


def test_names_that_lead_elsewhere_are_none(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from queryprof.fleet.copies import Copies, Wanted
    from queryprof.fleet.location import Entry

    names = [
        "aggregate/../../../escaped/a.parquet",
        "aggregate/service=shop/date=2026-11-01/..",
        "aggregate/service=shop/date=2026-11-01/*.parquet",
        "/etc/passwd",
        "aggregate/service=shop/date=2026-11-01/x/../../y.parquet",
    ]
    real = ObjectStore(store.url)

    class Hostile:
        url = real.url

        def entries(self, folder: str) -> Iterator[Entry]:
            return iter([Entry(name, 1, 0) for name in names])

        def get(self, name: str) -> bytes:
            raise AssertionError(name)

    hostile: Any = Hostile()
    place = Copies(hostile, str(tmp_path / "cache")).place(Wanted())
    assert not any(place.files.values())


def test_more_than_there_is_room_for(store: Store, tmp_path: Path) -> None:
    from queryprof.errors import QueryprofError
    from queryprof.fleet.copies import Copies, Wanted

    location = ObjectStore(store.url)
    for day in range(1, 4):
        location.put(f"aggregate/service=a/date=2026-11-0{day}/x.parquet", b"x" * 1000)
    cache = str(tmp_path / "cache")
    with pytest.raises(QueryprofError, match="select less"):
        Copies(location, cache, most_bytes=2999).place(Wanted())
    assert (
        len(list(Copies(location, cache, most_bytes=3000).place(Wanted()).files["aggregate"])) == 3
    )
    other = ObjectStore(store.url.replace("/shop?", "/other?"))
    other.put("aggregate/service=a/date=2026-11-01/x.parquet", b"y" * 1000)
    Copies(other, cache, most_bytes=3000).place(Wanted())
    assert len(list(Path(cache).rglob("*.parquet"))) == 3  # the oldest one was deleted


def test_wrong_urls() -> None:
    with pytest.raises(LocationError):
        ObjectStore("s3://")
