"""Measure blocks of this process: tests, and blocks inside tests.

The recording is read whenever a block begins, ends or reports its figures. The calls since the last
reading belong to every open block. If the process is not being recorded, it is recorded while a
block is open.
"""

from __future__ import annotations

import os
from threading import RLock
from typing import TYPE_CHECKING

from queryprof.core import _core
from queryprof.core.recorder import muted
from queryprof.core.settings import read_settings
from queryprof.recorder.session import session
from queryprof.region.changes import ChangeReader, ChangeSet
from queryprof.region.descriptions import Descriptions

if TYPE_CHECKING:
    from queryprof.core.settings import Settings

ALL_PLANS = 1.0
"""The share of time that reading plans may take: all, so that every run has the same plans."""


ENDED = "the limits cannot be checked: the recording ended inside the block (queryprof.uninstall)"
"""The error message if the recording ended inside a block with limits."""


MAX_STATEMENTS = 20_000
"""Maximum number of different statements in a recording, which has room for 32,768."""


class Block:
    """The executed calls of a block.

    Attributes:
        parts: the parts of the recording, in order. Empty for a block that only contains other
            blocks.
        with_plans: whether the block needs plans.
        is_whole: whether the same recording continued throughout the block.
    """

    def __init__(self, with_plans: bool, keeps_parts: bool) -> None:
        self.parts: list[ChangeSet] = []
        self.with_plans = with_plans
        self.keeps_parts = keeps_parts
        self.is_whole = True
        self.pid = os.getpid()

    @property
    def is_of_this_process(self) -> bool:
        """Whether the block was opened in this process. A block opened before a fork belongs to the
        parent.
        """
        return self.pid == os.getpid()


class Meter:
    """The open blocks of this process."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._blocks: list[Block] = []
        self._changes: ChangeReader | None = None
        self._descriptions: Descriptions | None = None
        self._has_started = False
        self._identity: object = None  # the recording whose changes are read
        self._statements = 0  # the largest statement number so far
        self._plans_before = 0.0

    def open(
        self,
        *,
        with_plans: bool = True,
        keeps_parts: bool = True,
        settings: Settings | None = None,
    ) -> Block:
        """Open a block. Calls before the block do not count.

        Args:
            settings: settings of the recording, if it begins here; None to use the working
                directory's.

        Raises:
            SettingsError, SessionError: this process cannot be recorded.
        """
        with self._lock:
            self._record(settings)
            self._take_changes()
            block = Block(with_plans=False, keeps_parts=keeps_parts)
            self.want_plans(block, with_plans)
            self._blocks.append(block)
            return block

    def want_plans(self, block: Block, with_plans: bool) -> None:
        """Set whether plans are read for the calls of a block from now on."""
        with self._lock:
            if with_plans and not any(one.with_plans for one in self._blocks):
                _core.take_used_plans()  # discards the plans of earlier calls
            block.with_plans = with_plans

    def border(self) -> None:
        """End the current part of every open block. The next part begins."""
        with self._lock:
            if self._blocks:
                self._record(None)
                self._take_changes()

    def renew(self) -> None:
        """Begin another recording if the current one has little room left for new statements."""
        with self._lock:
            if self._changes and self._has_started and self._statements > MAX_STATEMENTS:
                self._end()
                self._record(None)

    @property
    def is_own(self) -> bool:
        """Whether the recording began with a block, so that nothing else reads it."""
        return self._changes is not None and self._has_started

    def resume(self) -> None:
        """Continue recording if the recorded code has ended the recording."""
        with self._lock:
            if self._blocks:
                self._record(None)

    def close(self, block: Block) -> None:
        """Close a block. Ends the recording if it began with a block and this is the last open
        block.
        """
        with self._lock:
            if block in self._blocks:
                self._blocks.remove(block)
                if not self._blocks:
                    self._end()

    @property
    def descriptions(self) -> Descriptions:
        """Descriptions of the parts of open blocks."""
        with self._lock:
            if self._descriptions is None:
                self._descriptions = Descriptions()
            return self._descriptions

    def _record(self, settings: Settings | None) -> None:
        if self._changes is not None and session.is_on and self._identity == session.parts.identity:
            return
        for block in self._blocks:
            block.parts.clear()  # the numbers belong to a recording that has ended
            block.is_whole = False
        self._descriptions = None
        with muted():
            self._has_started = session.start(settings or read_settings(), owner=self)
            self._plans_before = _core.set_plan_time_share(ALL_PLANS)
            self._changes = ChangeReader()
            self._identity = session.parts.identity
            self._statements = 0

    def _take_changes(self) -> None:
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
            _core.set_plan_time_share(self._plans_before)
        session.release(self)
        self._descriptions = None

    def begin_in_child(self) -> None:
        """Reset the lock in a forked child: another thread may have held it."""
        self._lock = RLock()


meter = Meter()
"""The meter of this process. There is only one, because only one reader can read the changes."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=meter.begin_in_child)
