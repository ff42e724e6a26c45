"""`queryprof ship`: sends the windows of recordings to a fleet's store."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from queryprof.cli.amounts import DURATION, PERCENTAGE, SIZE
from queryprof.errors import QueryprofError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from queryprof.fleet.location import Location
    from queryprof.fleet.shipping import Sent, Shipper, Shipping
    from queryprof.model import Profile

WINDOW = "1h"
"""The windows of a command, unless its environment has others."""

FIRST_RETRY_S, LONGEST_RETRY_S = 1.0, 300.0
LAST_TRIES = 4
"""How often the rest of a command that has ended is tried to be sent."""

GRACE_S, LOOK_S = 2.0, 0.05
"""How long, and how often, processes that outlive the command are waited for."""

UNFINISHED = "ship"
COMMAND = "queryprof.command"
ONE_COMMAND = "-- COMMAND goes with at most one PLACE, and not with --once"


class WithCommand(click.Command):
    """A command whose arguments from `--` on are another command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keeps what comes after `--` for the callback."""
        own, command = args, None
        if "--" in args:
            at = args.index("--")
            own, command = args[:at], args[at + 1 :]
        ctx.meta[COMMAND] = command
        return super().parse_args(ctx, own)


@click.command(cls=WithCommand)
@click.option("--to", metavar="DIR|URL", help="The store: a directory, s3://...")
@click.option("--otlp", "endpoint", metavar="URL", help="An endpoint of OpenTelemetry, too.")
@click.option("--statement-text", "has_text", is_flag=True, help="otlp: statements' texts, too.")
@click.option(
    "--every",
    "every_s",
    type=DURATION,
    default="5m",
    show_default=True,
    help="How long after one look the next one comes.",
)
@click.option("--once", is_flag=True, help="Looks once, and ends.")
@click.option(
    "--traces",
    "traces_percent",
    type=PERCENTAGE,
    metavar="PERCENT",
    help="Of so many hosts, each day others, whole traces are sent, too.",
)
@click.option(
    "--keep",
    "kept_bytes",
    type=SIZE,
    default="1GB",
    show_default=True,
    help="How much waits on the disk for a store that is away.",
)
@click.option("--anonymize", is_flag=True, help="Hashes instead of statements, places and names.")
@click.argument("places", nargs=-1, type=click.Path(), metavar="[PLACE]... [-- COMMAND]")
@click.pass_context
def ship(
    context: click.Context,
    to: str | None,
    endpoint: str | None,
    has_text: bool,
    every_s: float,
    once: bool,
    traces_percent: float | None,
    kept_bytes: float,
    anonymize: bool,
    places: tuple[str, ...],
) -> None:
    """Sends the windows of recordings that have ended to a store, each once, and deletes them.

    PLACE is a directory in which processes record with QUERYPROF_WINDOW, or the path of a trace.
    With a COMMAND it is run, and what its processes record is sent while it runs and at its end:
    for a container. The exit status is the command's.
    """
    command = context.meta[COMMAND]
    wrong = [
        (command is not None and (not command or once or len(places) > 1), ONE_COMMAND),
        (command is None and not places, "needs a PLACE, or -- COMMAND"),
        (to is None and endpoint is None, "needs --to, or --otlp"),
        (traces_percent is not None and to is None, "--traces goes with --to"),
        (traces_percent is not None and traces_percent > 100, "--traces: at most 100%"),
        (anonymize and bool(traces_percent or endpoint), "--anonymize: traces and OTLP have names"),
        (has_text and endpoint is None, "--statement-text goes with --otlp"),
    ]
    for is_wrong, why in wrong:
        if is_wrong:
            raise click.UsageError(why)
    from queryprof.cli.fleet_extra import fleet_extra

    with fleet_extra():
        from queryprof.fleet.shipping import Shipping
    shipping = Shipping(int(kept_bytes), (traces_percent or 0) / 100, anonymize)
    notes = _Notes()
    target = _Target(to, endpoint, has_text)
    if command:
        _ship_beside(command, places[0] if places else None, target, shipping, every_s, notes)
    for place in places:
        _refuse_missing(place)
    with ExitStack() as shippers:
        make = target.shippers(shipping, notes)
        all_of_them = [shippers.enter_context(make(place)) for place in places]
        rounds = _Rounds(all_of_them, target.name, every_s, notes)
        if once:
            rounds.send()
            sys.exit(1 if notes.left_out else 0)
        for wait_s in rounds.waits_s():
            time.sleep(wait_s)


class _Notes:
    """Prints what is to be known, each reason once.

    Attributes:
        left_out: whether something was.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()
        self.left_out = False

    def __call__(self, text: str) -> None:
        from queryprof.cli.output import print_message

        if text not in self._known:
            self._known.add(text)
            print_message(text)
        self.left_out = True

    def say(self, text: str) -> None:
        """Prints a line about the work itself."""
        from queryprof.cli.output import print_message

        print_message(text)


class _Rounds:
    """Sends what there is, again and again.

    Args:
        to: what the store is called.
    """

    def __init__(self, shippers: Sequence[Shipper], to: str, every_s: float, notes: _Notes) -> None:
        self._shippers = shippers
        self._to = to
        self._every_s = every_s
        self._notes = notes

    def send(self) -> None:
        """One round. Raises QueryprofError or OSError: the rest waits."""
        from queryprof.analysis.units import counted

        for shipper in self._shippers:
            sent: Sent = shipper.run()
            if sent.lost:
                lost = counted(sent.lost, "window")
                self._notes.say(f"{shipper.place}: {lost} lost: more than --keep waits to be sent")
            if sent.windows:
                files = counted(sent.files, "file")
                self._notes.say(f"{counted(sent.windows, 'window')} sent to {self._to} ({files})")

    def waits_s(self) -> Iterator[float]:
        """How long to wait after each round."""
        retry_s = FIRST_RETRY_S
        while True:
            try:
                self.send()
                retry_s = FIRST_RETRY_S
                yield self._every_s
            except (QueryprofError, OSError) as error:
                self._notes.say(f"{error}; tried again in {retry_s:g} s")
                yield retry_s
                retry_s = min(2 * retry_s, LONGEST_RETRY_S)


def _location(to: str) -> Location:
    """The store. Raises QueryprofError."""
    from queryprof.fleet.location import is_url, location_of
    from queryprof.fleet.parquet_files import refuse_other_schema

    if not is_url(to):
        if "://" in to:
            raise QueryprofError(f"{to}: is no URL of a store: s3://, gs:// or abfs://")
        refuse_other_schema(to)
    return location_of(to, UNFINISHED)


@dataclass(frozen=True, slots=True)
class _Target:
    """Where windows go: a store, an endpoint of OpenTelemetry, or both."""

    to: str | None
    endpoint: str | None
    has_text: bool

    @property
    def name(self) -> str:
        """What it is called."""
        return " and ".join(filter(None, (self.to, self.endpoint)))

    @property
    def options(self) -> str:
        """As they are typed."""
        given = (("--to", self.to), ("--otlp", self.endpoint))
        return " ".join(f"{option} {value}" for option, value in given if value)

    def shippers(self, shipping: Shipping, notes: _Notes) -> Callable[[str], Shipper]:
        """A function that makes the shipper of a place. Raises QueryprofError."""
        from queryprof.cli.otlp import otlp_export
        from queryprof.fleet.shipping import Shipper

        location = _location(self.to) if self.to else None
        export = otlp_export(self.endpoint, self.has_text) if self.endpoint else None

        def send(profile: Profile) -> None:
            if export:
                export.send(profile)

        return lambda place: Shipper(place, location, shipping, notes, send if export else None)


def _refuse_missing(place: str) -> None:
    directory = place if os.path.isdir(place) else os.path.dirname(place) or "."
    if not os.path.isdir(directory):
        raise QueryprofError(f"{place}: there is no such directory")
    if not os.path.isdir(place) and not place.endswith(".qprof"):
        raise QueryprofError(f"{place}: is no directory, and no trace's path (*.qprof)")


def _ship_beside(
    command: Sequence[str],
    place: str | None,
    target: _Target,
    shipping: Shipping,
    every_s: float,
    notes: _Notes,
) -> None:
    """Runs a command, sends what its processes record, and exits with its status."""
    from queryprof.autoload import VARIABLE
    from queryprof.cli.command import python_command, run_command
    from queryprof.cli.recording import environment_with_hook, no_signals
    from queryprof.cli.signals import Forwarding
    from queryprof.core.settings import WINDOW_VARIABLE, read_settings

    read_settings()  # invalid settings are reported before the program runs
    arguments, _ = python_command(command)
    with Forwarding() as signals, ExitStack() as own:
        directory = os.path.abspath(place or tempfile.mkdtemp(prefix="queryprof-ship-"))
        if place:
            os.makedirs(directory, exist_ok=True)
        else:
            own.callback(_remove_empty, directory)
        environment = environment_with_hook()
        environment[VARIABLE] = os.path.join(directory, "")
        if not environment.get(WINDOW_VARIABLE):
            environment[WINDOW_VARIABLE] = WINDOW
        with no_signals():  # also for the threads of the stores' libraries
            shipper = own.enter_context(target.shippers(shipping, notes)(directory))
        rounds = _Rounds([shipper], target.name, every_s, notes)
        is_over = threading.Event()

        def send() -> None:
            for wait_s in rounds.waits_s():
                if is_over.wait(wait_s):
                    return

        thread = threading.Thread(target=send, name="queryprof ships", daemon=True)
        with no_signals():
            thread.start()
        try:
            status = run_command(arguments, environment, signals)
        finally:
            is_over.set()
            thread.join()
        _send_rest(rounds, shipper, target, notes)
    status.exit()


def _send_rest(rounds: _Rounds, shipper: Shipper, target: _Target, notes: _Notes) -> None:
    """Sends what a command has left. It raises nothing: the command's status matters more."""
    deadline = time.monotonic() + GRACE_S
    while shipper.has_living() and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    waits_s = rounds.waits_s()
    for _ in range(LAST_TRIES):
        wait_s = next(waits_s)
        if not shipper.waits():
            break
        time.sleep(wait_s)
    waiting = shipper.waits()
    if waiting or shipper.has_living():
        later = f"queryprof ship --once {target.options} {shipper.place}"
        what = f"{waiting:,} not sent" if waiting else "processes still record"
        notes.say(f"{shipper.place}: {what}; `{later}` sends what is there")


def _remove_empty(directory: str) -> None:
    try:
        os.rmdir(directory)
    except OSError:
        return  # what is left there was printed
