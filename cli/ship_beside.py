"""`queryprof fleet ship -- COMMAND`: run a command and send what its processes record."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from queryprof.errors import QueryprofError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from queryprof.cli.ship import Destination, ShippingRounds
    from queryprof.fleet.shipping import Shipper, Shipping

WINDOW = "1h"
"""Length of the windows, unless the environment sets another length."""

MAX_LAST_TRIES = 3
"""Maximum number of tries to send the remaining windows after the command has ended. A container
often has only ten seconds to end.
"""

GRACE_S, LOOK_S = 2.0, 0.05
"""Seconds to wait for processes that outlive the command, and seconds between two checks."""


def ship_beside(
    command: Sequence[str],
    place: str | None,
    target: Destination,
    shipping: Shipping,
    rounds: ShippingRounds,
) -> None:
    """Run a command, send what its processes record, and exit with its status.

    The command runs even if nothing can be sent.

    Raises:
        QueryprofError: the store, the settings or the command are invalid.
    """
    from queryprof.cli.command import python_command, run_command
    from queryprof.cli.recording import blocked_signals
    from queryprof.cli.signals import SignalForwarding
    from queryprof.core.settings import read_settings

    read_settings()  # invalid settings are reported before the program runs
    arguments, _ = python_command(command)
    with SignalForwarding() as signals, ExitStack() as own:
        with blocked_signals():  # includes the threads of the stores' libraries
            make = target.shipper_factory(shipping, rounds.notes)
        directory = ""
        try:
            directory = _recording_directory(place)
            rounds.shippers.append(own.enter_context(make([directory])))
        except (QueryprofError, OSError) as error:
            rounds.notes.print_line(f"{error}: the command runs, but nothing is sent")
        is_over = threading.Event()
        thread = threading.Thread(
            target=_send_until_over, args=(rounds, is_over), name="queryprof ships", daemon=True
        )
        with blocked_signals():
            thread.start()
        try:
            status = run_command(arguments, _command_environment(directory), signals)
        finally:
            is_over.set()
            thread.join()
            for shipper in rounds.shippers:
                _send_remaining_windows(rounds, shipper, target)
        own.close()
        if directory and not place:
            _remove_if_empty(directory)
    status.exit()


def _recording_directory(place: str | None) -> str:
    """Return the directory in which the command's processes record. Raises OSError."""
    if place is None:
        return tempfile.mkdtemp(prefix="queryprof-ship-")
    os.makedirs(place, exist_ok=True)
    return os.path.abspath(place)


def _command_environment(directory: str) -> Mapping[str, str]:
    """Return the environment in which the command records in a directory. If the directory is "",
    the command does not record.
    """
    from queryprof.cli.recording import environment_with_hook
    from queryprof.core.settings import WINDOW_VARIABLE
    from queryprof.recorder.autoload import VARIABLE

    if not directory:
        return os.environ
    environment = environment_with_hook()
    environment[VARIABLE] = os.path.join(directory, "")
    environment[WINDOW_VARIABLE] = environment.get(WINDOW_VARIABLE) or WINDOW
    return environment


def _send_until_over(rounds: ShippingRounds, is_over: threading.Event) -> None:
    """Send until the command ends. Never raises: the command's output would show a traceback."""
    try:
        for wait_s in rounds.waits_s():
            if is_over.wait(wait_s):
                return
    except Exception as error:
        rounds.notes.print_line(f"nothing more is sent before the command ends: {error}")


def _send_remaining_windows(rounds: ShippingRounds, shipper: Shipper, target: Destination) -> None:
    """Send the windows that a command has left. Never raises, because an error must not replace the
    command's exit status.
    """
    try:
        deadline = time.monotonic() + GRACE_S
        while shipper.has_living() and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        waits_s = rounds.waits_s()
        for number in range(1, MAX_LAST_TRIES + 1):
            wait_s = next(waits_s)
            if not shipper.waits() or number == MAX_LAST_TRIES:
                break
            time.sleep(wait_s)
        waiting = shipper.waits()
        if waiting or shipper.has_living():
            later = f"queryprof fleet ship --once {target.options} {shipper.directory}"
            what = f"{waiting:,} not sent" if waiting else "processes still record here"
            rounds.notes.print_line(f"{shipper.directory}: {what}; `{later}` sends the rest")
    except Exception as error:
        rounds.notes.print_line(f"{shipper.directory}: not everything was sent: {error}")


def _remove_if_empty(directory: str) -> None:
    """Remove the directory, unless it has files or a process still records in it."""
    from queryprof.collect.closed_windows import has_recording_process

    if not has_recording_process(directory):
        try:
            os.rmdir(directory)
        except OSError:
            return  # the remaining files were reported
