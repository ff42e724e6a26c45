"""`queryprof fleet ship`: send the windows of recordings to a fleet's store."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from queryprof.cli.amounts import DURATION, SIZE
from queryprof.cli.otlp import otlp_options
from queryprof.errors import QueryprofError, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from queryprof.fleet.batches import Batch
    from queryprof.fleet.location import Location
    from queryprof.fleet.shipping import SentWindows, Shipper, Shipping
    from queryprof.model import Profile

FIRST_RETRY_S, MAX_RETRY_S = 1.0, 300.0
UNFINISHED = "ship"
COMMAND = "queryprof.command"
ANONYMOUS = "--anonymize cannot be combined with --otlp, whose data has names"
COMMAND_CONFLICT = "with -- COMMAND, give at most one PLACE, and not --once"


class CommandWithProgram(click.Command):
    """A command whose arguments after `--` are another command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments after `--` for the callback."""
        own, command = args, None
        if "--" in args:
            at = args.index("--")
            own, command = args[:at], args[at + 1 :]
        ctx.meta[COMMAND] = command
        return super().parse_args(ctx, own)


@click.command(cls=CommandWithProgram)
@click.option("--to", metavar="DIR|URL", help="Store: a directory or a URL (s3://...).")
@otlp_options
@click.option(
    "--every",
    "every_s",
    type=DURATION,
    default="5m",
    show_default=True,
    help="Time between two rounds.",
)
@click.option("--once", is_flag=True, help="Send once and exit.")
@click.option(
    "--keep",
    "kept_bytes",
    type=SIZE,
    default="1GB",
    show_default=True,
    help="Maximum disk space for unsent windows while the store is down.",
)
@click.option("--anonymize", is_flag=True, help="Send hashes of statements, places and names.")
@click.argument("places", nargs=-1, type=click.Path(), metavar="[PLACE]... [-- COMMAND]")
@click.pass_context
def ship(
    context: click.Context,
    to: str | None,
    endpoint: str | None,
    has_text: bool,
    every_s: float,
    once: bool,
    kept_bytes: float,
    anonymize: bool,
    places: tuple[str, ...],
) -> None:
    """Send finished windows to a store, and delete the local files.

    PLACE is a directory in which processes record with QUERYPROF_WINDOW, or the path of a trace.
    With a COMMAND (for a container), queryprof runs it, sends what its processes record, and exits
    with its status.
    """
    command = context.meta[COMMAND]
    wrong = [
        (command is not None and (not command or once or len(places) > 1), COMMAND_CONFLICT),
        (command is None and not places, "needs a PLACE, or -- COMMAND"),
        (to is None and endpoint is None, "needs --to, or --otlp"),
        (anonymize and endpoint is not None, ANONYMOUS),
        (has_text and endpoint is None, "--statement-text needs --otlp"),
    ]
    for is_wrong, why in wrong:
        if is_wrong:
            raise click.UsageError(why)
    from queryprof.cli.fleet_extra import fleet_extra_imports
    from queryprof.cli.ship_beside import ship_beside

    with fleet_extra_imports():
        from queryprof.fleet.shipping import Shipping
    shipping = Shipping(int(kept_bytes), anonymize)
    notes = PrintedOnce()
    target = Destination(to, endpoint, has_text)
    rounds = ShippingRounds(target, every_s, notes)
    if command:
        ship_beside(command, places[0] if places else None, target, shipping, rounds)
    for place in places:
        _refuse_missing_place(place)
    with ExitStack() as shippers:
        make = target.shipper_factory(shipping, notes)
        for some in _group_by_directory(places):
            rounds.shippers.append(shippers.enter_context(make(some)))
        if once:
            rounds.send()
            sys.exit(1 if notes.left_out else 0)
        for wait_s in rounds.waits_s():
            time.sleep(wait_s)


def _group_by_directory(places: Sequence[str]) -> list[list[str]]:
    """Group the places by directory, without duplicates."""
    found: dict[str, dict[str, str]] = {}
    for place in places:
        directory = place if os.path.isdir(place) else os.path.dirname(place) or "."
        of_directory = found.setdefault(os.path.realpath(directory), {})
        of_directory.setdefault(os.path.realpath(place), place)
    whole = {key: some[key] for key, some in found.items() if key in some}
    return [[whole[key]] if key in whole else [*some.values()] for key, some in found.items()]


class PrintedOnce:
    """Prints each message once. Ignores errors of printing.

    Attributes:
        left_out: whether an input was skipped.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()
        self.left_out = False

    def __call__(self, text: str) -> None:
        if text not in self._known:
            self._known.add(text)
            self.print_line(text)
        self.left_out = True

    def print_line(self, text: str) -> None:
        """Print a line even if it was printed before, without setting `left_out`."""
        from queryprof.cli.output import discard_closed_output, print_message

        try:
            print_message(text)
        except OSError:
            discard_closed_output()


class ShippingRounds:
    """Sends finished windows repeatedly.

    Attributes:
        shippers: one for each directory.
    """

    def __init__(self, target: Destination, every_s: float, notes: PrintedOnce) -> None:
        self.shippers: list[Shipper] = []
        self.notes = notes
        self._target = target
        self._every_s = every_s

    def send(self) -> None:
        """Send the finished windows once. Raises QueryprofError or OSError. Unsent windows wait for
        the next call.
        """
        from queryprof.analysis.units import counted

        for shipper in self.shippers:
            sent: SentWindows = shipper.run()
            if sent.windows:
                files = counted(sent.files, "file")
                self.notes.print_line(
                    f"{counted(sent.windows, 'window')} sent to {self._target.name} ({files})"
                )

    def waits_s(self) -> Iterator[float]:
        """Send repeatedly, and yield after each try the seconds to wait before the next try."""
        retry_s = FIRST_RETRY_S
        while True:
            try:
                self.send()
                retry_s = FIRST_RETRY_S
                yield self._every_s
            except (QueryprofError, OSError, sqlite3.Error) as error:
                self.notes.print_line(f"{error}; retrying in {retry_s:g} s")
                yield retry_s
                retry_s = min(2 * retry_s, MAX_RETRY_S)


def _store_location(to: str) -> Location:
    """Return the location of a store. Raises QueryprofError if `to` is not valid."""
    from queryprof.fleet.location import is_url, location_of
    from queryprof.fleet.parquet_files import refuse_other_schema

    if not is_url(to):
        if "://" in to:
            raise QueryprofError(f"{to}: not the URL of a store: s3://, gs:// or abfs://")
        refuse_other_schema(to)
    return location_of(to, UNFINISHED)


@dataclass(frozen=True, slots=True)
class Destination:
    """The destination of windows: a store, an OpenTelemetry endpoint, or both."""

    to: str | None
    endpoint: str | None
    has_text: bool

    @property
    def name(self) -> str:
        """The destination's name for messages."""
        return " and ".join(filter(None, (self.to, self.endpoint)))

    @property
    def options(self) -> str:
        """The options as typed on the command line."""
        given = (("--to", self.to), ("--otlp", self.endpoint))
        return " ".join(f"{option} {value}" for option, value in given if value)

    def shipper_factory(
        self, shipping: Shipping, notes: PrintedOnce
    ) -> Callable[[Sequence[str]], Shipper]:
        """Return a function that makes a shipper for the places of one directory. Raises
        QueryprofError.
        """
        from queryprof.cli.otlp import otlp_exporter
        from queryprof.fleet.shipping import Shipper

        location = _store_location(self.to) if self.to else None
        export = otlp_exporter(self.endpoint, self.has_text) if self.endpoint else None

        def send(profile: Profile, batch: Batch) -> bool:
            from queryprof.telemetry.otlp_sending import RejectedError

            try:
                if export:
                    export.send(profile, batch)
            except (RejectedError, TraceError) as error:
                notes(f"not sent, and will not be retried: {error}")
                return False
            return True

        return lambda places: Shipper(places, location, shipping, notes, send if export else None)


def _refuse_missing_place(place: str) -> None:
    directory = place if os.path.isdir(place) else os.path.dirname(place) or "."
    if not os.path.isdir(directory):
        raise QueryprofError(f"{place}: no such directory")
    if not os.path.isdir(place) and not place.endswith(".qprof"):
        raise QueryprofError(f"{place}: not a directory, nor the path of a trace (*.qprof)")
