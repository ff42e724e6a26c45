"""Each response is a transaction: bulk_commit()."""

import io
import tempfile
from pathlib import Path

import requests
import requests_cache
import urllib3
from requests.adapters import HTTPAdapter
from shared.timed import run


class Canned(HTTPAdapter):
    """Answers without a network."""

    def send(self, request: requests.PreparedRequest, **_: object) -> requests.Response:
        raw = urllib3.HTTPResponse(
            io.BytesIO(b"{}"), status=200, preload_content=False, request_url=request.url
        )
        return self.build_response(request, raw)


backend = requests_cache.SQLiteCache(str(Path(tempfile.mkdtemp(), "http.sqlite")))
session = requests_cache.CachedSession(backend=backend)
session.mount("http://", Canned())


def before() -> None:
    for number in range(200):
        session.get(f"http://canned.example/{number}")


def after() -> None:
    with backend.responses.bulk_commit():
        before()


run(before, after)
