"""The span of a WSGI request ends with the response, however that ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import queryprof

pytestmark = pytest.mark.once


class Broken:
    def __iter__(self) -> Iterator[bytes]:
        yield b"x"

    def close(self) -> None:
        raise ZeroDivisionError


def test_a_close_that_raises_ends_the_request() -> None:
    application = queryprof.WsgiMiddleware(lambda environ, start: Broken())
    with queryprof.profile() as recording:
        body = application({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}, print)
        assert list(body) == [b"x"]
        with pytest.raises(ZeroDivisionError):
            body.close()  # type: ignore[attr-defined]
    (span,) = [one for one in recording.profile.spans if one.name]
    assert span.count == 1
