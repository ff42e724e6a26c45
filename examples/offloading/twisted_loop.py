"""The experiment on Twisted: its reactor, transports and thread pool."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar, cast

from pairs import Channel, Loop
from twisted.internet import reactor as installed_reactor
from twisted.internet.defer import (
    Deferred,
    DeferredQueue,
    FirstError,
    ensureDeferred,
    gatherResults,
)
from twisted.internet.protocol import Factory
from twisted.internet.threads import deferToThread
from twisted.protocols.basic import Int32StringReceiver
from twisted.python.failure import Failure

reactor = cast("Any", installed_reactor)  # to type checkers a module
T = TypeVar("T")

MAX_MESSAGE_BYTES = 2**24


class TwistedChannel(Int32StringReceiver):
    """Send and receive on the reactor, with the protocol of `pairs.framed`."""

    MAX_LENGTH = MAX_MESSAGE_BYTES

    def __init__(self) -> None:
        self._messages: DeferredQueue[bytes] = DeferredQueue()

    def stringReceived(self, string: bytes) -> None:  # noqa: N802  Twisted's name
        """Keep a message for `receive`."""
        self._messages.put(string)

    async def send(self, message: bytes) -> None:
        """Return at once. The reactor sends the message."""
        self.sendString(message)  # type: ignore[no-untyped-call]

    async def receive(self) -> bytes:
        """Return the next message."""
        return await self._messages.get()


class TwistedLoop:
    """The reactor with its thread pool."""

    def in_thread(self, work: Callable[[], T]) -> Awaitable[T]:
        """Run work in a thread of the pool."""
        return deferToThread(work)

    def channel(self, end: socket.socket) -> Channel:
        """Return a channel on the reactor, which copies the socket."""
        end.setblocking(False)
        channel = TwistedChannel()
        factory = Factory.forProtocol(lambda: channel)
        reactor.adoptStreamConnection(end.fileno(), socket.AF_INET, factory)
        return channel

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> object:
        """Call the callback once."""
        return cast("object", reactor.callLater(delay_s, callback))

    async def together(self, work: Sequence[Coroutine[Any, Any, None]]) -> None:
        """Run all coroutines at once. Returns when all have finished."""
        try:
            await gatherResults([ensureDeferred(one) for one in work], consumeErrors=True)
        except FirstError as error:
            error.subFailure.raiseException()


def run(main: Callable[[Loop], Coroutine[Any, Any, T]], threads: int) -> T:
    """Run a coroutine function on the reactor, which a process can start only once."""
    results: list[T | Failure] = []

    def finish(result: T | Failure) -> None:
        results.append(result)
        reactor.stop()

    def start() -> None:
        finished: Deferred[T] = ensureDeferred(main(TwistedLoop()))
        finished.addBoth(finish)

    reactor.suggestThreadPoolSize(threads)
    reactor.callWhenRunning(start)
    reactor.run()
    (result,) = results
    if isinstance(result, Failure):
        result.raiseException()
    return result
