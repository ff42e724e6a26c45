"""Names that are no Unicode, and deep stacks of libraries."""

from __future__ import annotations

import copy
import sqlite3
import threading
from contextlib import closing

import pytest

import queryprof

pytestmark = pytest.mark.once


def test_a_thread_s_name_keeps_what_is_no_unicode() -> None:
    """Two such names stay two."""

    def work() -> None:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("SELECT 1")

    with queryprof.profile() as p:
        for name in ("a\udc80", "a\udc81"):
            thread = threading.Thread(target=work, name=name)
            thread.start()
            thread.join()
    names = {one.thread.name for one in p.profile.aggregates}
    assert names == {"a\\udc80", "a\\udc81"}


class Asks:
    """Its copy is a query."""

    def __deepcopy__(self, memo: object) -> Asks:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("SELECT 'copied'")
        return self


def test_a_caller_behind_many_frames_of_a_library_is_found() -> None:
    nested: object = Asks()
    for _ in range(40):  # each takes two frames
        nested = [nested]
    with queryprof.profile() as p:
        copy.deepcopy(nested)
    (path,) = {one.path for one in p.profile.aggregates if one.operation == "execute"}
    functions = [frame.function.rpartition(".")[2] for frame in path]
    assert functions[:2] == [
        "__deepcopy__",
        "test_a_caller_behind_many_frames_of_a_library_is_found",
    ]
