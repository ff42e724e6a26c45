"""Measures blocks of this process: tests, and parts of them, which may lie inside one another.

The recording is read at each border, and what it had since the last one belongs to every block that
is open. Where nothing is recorded, it is while a block is open.
"""

from __future__ import annotations

import os
from threading import RLock
from typing import TYPE_CHECKING

from queryprof.core import _core
from queryprof.core.recorder import muted
from queryprof.core.settings import read_settings
from queryprof.region.changes import Changes, Part
from queryprof.region.descriptions import Descriptions
from queryprof.session import session

if TYPE_CHECKING:
    from queryprof.core.settings import Settings

ALL_PLANS = 1.0
"""The plan of every new statement is read, at any cost: the same ones in every run."""


ENDED = "the limits cannot be checked: the recording ended inside the block (queryprof.uninstall)"
"""What is said of a block that is held to limits."""


MOST_STATEMENTS = 20_000
"""Different ones of a recording, which has room for 32,768."""


class Block:
    """What a block has executed.

    Attributes:
        parts: in their order; none are kept where it only has others in it.
        with_plans: whether it needs the plans.
        is_whole: False: the recording was ended and begun again inside it.
    """

    def __init__(self, with_plans: bool, keeps_parts: bool) -> None:
        self.parts: list[Part] = []
        self.with_plans = with_plans
        self.keeps_parts = keeps_parts
        self.is_whole = True
        self.pid = os.getpid()

    @property
    def is_of_this_process(self) -> bool:
        """False: it was forked inside it, and the parent measures it."""
        return self.pid == os.getpid()


class Meter:
    """The open blocks of this process."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._blocks: list[Block] = []
        self._changes: Changes | None = None
        self._descriptions: Descriptions | None = None
        self._has_started = False
        self._identity: object = None  # of the recording whose changes are read
        self._statements = 0  # the largest number of one
        self._plans_before = 0.0

    def open(
        self,
        *,
        with_plans: bool = True,
        keeps_parts: bool = True,
        settings: Settings | None = None,
    ) -> Block:
        """Begins a block: what was executed before is none of it.

        Args:
            settings: of the recording, if that begins here; None: those of the working directory.

        Raises:
            SettingsError, SessionError: this process cannot be recorded.
        """
        with self._lock:
            self._record(settings)
            self._take()
            block = Block(with_plans=False, keeps_parts=keeps_parts)
            self.want_plans(block, with_plans)
            self._blocks.append(block)
            return block

    def want_plans(self, block: Block, with_plans: bool) -> None:
        """Has the plans of what a block executes from now on, or not."""
        with self._lock:
            if with_plans and not any(one.with_plans for one in self._blocks):
                _core.plans_met()  # of what was executed before
            block.with_plans = with_plans

    def border(self) -> None:
        """Ends a part of all open blocks."""
        with self._lock:
            if self._blocks:
                self._record(None)
                self._take()

    def renew(self) -> None:
        """Begins another recording where this one has little room left for new statements."""
        with self._lock:
            if self._changes and self._has_started and self._statements > MOST_STATEMENTS:
                self._end()
                self._record(None)

    @property
    def is_own(self) -> bool:
        """Whether the recording began with a block, so that no other one reads it."""
        return self._changes is not None and self._has_started

    def resume(self) -> None:
        """Records on, if what was recorded has ended the recording."""
        with self._lock:
            if self._blocks:
                self._record(None)

    def close(self, block: Block) -> None:
        """Ends a block; the recording, too, if it began with a block and this is the last one."""
        with self._lock:
            if block in self._blocks:
                self._blocks.remove(block)
                if not self._blocks:
                    self._end()

    @property
    def descriptions(self) -> Descriptions:
        """Describes the parts of open blocks."""
        with self._lock:
            if self._descriptions is None:
                self._descriptions = Descriptions()
            return self._descriptions

    def _record(self, settings: Settings | None) -> None:
        if self._changes is not None and session.is_on and self._identity == session.parts.identity:
            return
        for block in self._blocks:
            block.parts.clear()  # their numbers are those of a recording that has ended
            block.is_whole = False
        self._descriptions = None
        with muted():
            self._has_started = session.start(settings or read_settings(), owner=self)
            self._plans_before = _core.plans_allow(ALL_PLANS)
            self._changes = Changes()
            self._identity = session.parts.identity
            self._statements = 0

    def _take(self) -> None:
        assert self._changes is not None
        with_plans = any(block.with_plans for block in self._blocks)
        part = self._changes.take(with_plans=with_plans)
        self._statements = max(self._statements, *part.executed, 0)
        for block in self._blocks:
            if block.keeps_parts:
                block.parts.append(part)

    def _end(self) -> None:
        if self._changes is None:
            return
        self._changes.close()
        self._changes = None
        if session.is_on and self._identity == session.parts.identity:
            _core.plans_allow(self._plans_before)
        session.release(self)
        self._descriptions = None

    def begin_in_child(self) -> None:
        """In a forked child: another thread may have been in here."""
        self._lock = RLock()


meter = Meter()
"""Of this process: its changes can be read in one place alone."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=meter.begin_in_child)
