"""Only some parts of a recorded process's command line are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from queryprof.region.command_line import without_values


def test_code_on_the_command_line_is_not_kept() -> None:
    """The argument of -c is the program itself. Arguments of Python's own options are not values of
    the program.
    """
    assert without_values(["python", "-X", "dev", "-c", "connect('Hush')", "Hush"]) == [
        "python",
        "-X",
        "dev",
        "-c",
        "?",
        "?",
    ]
    assert without_values(["python", "-W", "error", "-m", "app", "Hush", "-k"]) == [
        "python",
        "-W",
        "error",
        "-m",
        "app",
        "?",
        "-k",
    ]


@pytest.mark.parametrize(
    ("argument", "is_shown"),
    [
        ("shop:app", True),
        ("web.asgi:app", True),
        ("other:app", False),
        ("shop:Hush-1", False),
        ("shop", False),
        ("shop:", False),
        (":app", False),
        ("../shop:app", False),
        ("web:app", False),
    ],
)
def test_the_object_that_a_server_is_started_with_is_kept(
    tmp_path: Path, argument: str, is_shown: bool
) -> None:
    """The object is in a module of the directory. After an option it would be a value."""
    (tmp_path / "web").mkdir()
    for file in ("shop.py", "web/asgi.py"):
        (tmp_path / file).write_text("")
    shown = argument if is_shown else "?"
    assert without_values(["python", "-m", "uvicorn", argument], str(tmp_path))[3:] == [shown]
    command = ["python", "/venv/bin/gunicorn", "-w", "4", argument, "--auth", "shop:app"]
    assert without_values(command, str(tmp_path))[3:] == ["?", shown, "--auth", "?"]
    twice = ["python", "/venv/bin/gunicorn", "shop:app", "shop:app"]
    assert without_values(twice, str(tmp_path))[2:] == ["shop:app", "?"]
    assert without_values(["python", "sync.py", argument], str(tmp_path))[2:] == ["?"]
    assert without_values(["python", "-m", "sync", argument], str(tmp_path))[3:] == ["?"]
    assert without_values(["python", "-m"], str(tmp_path)) == ["python", "-m"]
    assert without_values(command) == [
        "python",
        "/venv/bin/gunicorn",
        "-w",
        "?",
        "?",
        "--auth",
        "?",
    ]
