"""Find the event loop steps of the shell that runs cells."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from queryprof.trace.shell_loops import without_shells


def loop_of(kind, file):
    step = SimpleNamespace(function=SimpleNamespace(kind=kind, file=file))
    return SimpleNamespace(functions=[step], stalls=[], stall_events=[])


@pytest.mark.parametrize(
    "file",
    [
        "/usr/lib/python3/site-packages/ipykernel/kernelbase.py",
        "C:\\Python\\Lib\\site-packages\\ipykernel\\kernelbase.py",
    ],
)
def test_a_loop_of_the_shell_alone_is_left_out(file):
    """This works for recordings of any operating system, on any operating system."""
    assert list(without_shells([loop_of("library", file)])) == []


def test_a_program_in_a_directory_of_that_name_is_the_users():
    loop = loop_of("user", "/home/me/ipykernel/app.py")
    assert list(without_shells([loop])) == [loop]
