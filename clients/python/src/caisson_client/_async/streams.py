"""Streams of the server as iterators."""
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from .._errors import CaissonError, ConnectionFailedError, StreamError
from .._models import CommandInfo, Output, build, decode_bytes
from .._wire import ServerEvent
from .http import EventSource

_Item = TypeVar("_Item")
_MAX_RESUMES = 5


class AsyncEvents(Generic[_Item]):
    """Iterates the items of a stream that has no end by itself: leave the loop and close() it."""

    def __init__(self, source: EventSource, decode: Callable[[ServerEvent], _Item]) -> None:
        self._source, self._decode = source, decode
        self._closed = False

    def __aiter__(self) -> AsyncEvents[_Item]:
        return self

    async def __anext__(self) -> _Item:
        try:
            event = None if self._closed else await self._source.next()
        except ConnectionFailedError:
            if not self._closed:  # else close() ended the read
                raise
            event = None
        if event is None:
            raise StopAsyncIteration
        if event.type == "error":
            raise StreamError(str(json.loads(event.data).get("reason", "")))
        return self._decode(event)

    async def __aenter__(self) -> AsyncEvents[_Item]:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the stream, also for a loop that waits in another thread or task."""
        self._closed = True
        self._source.close()


class AsyncCommandOutput:
    """Iterates the output of a command, piece by piece, until it ends; then `info` has its result.

    If the connection breaks, it continues at the byte where it was.
    """

    def __init__(self, source: EventSource, reopen: Callable[[str, dict[str, str]], Any], command_id: str = "") -> None:
        #: Of the command; set once the first event arrived.
        self.command_id = command_id
        #: How the command ended; None before.
        self.info: CommandInfo | None = None
        self._source, self._reopen = source, reopen
        self._position = ""
        self._resumes = 0
        self._ended = False

    def __aiter__(self) -> AsyncCommandOutput:
        return self

    async def __anext__(self) -> Output:
        while True:
            if self._ended:
                raise StopAsyncIteration
            event = await self._next_event()
            if event is None:
                self._ended = True
                continue
            self._position = event.id or self._position
            value: dict[str, Any] = json.loads(event.data)
            if event.type == "started":
                self.command_id = str(value["command_id"])
            elif event.type == "exit":
                self.info = build(CommandInfo, value)
                self._ended = True
                self._source.close()
            elif event.type == "error":
                self._ended = True
                raise StreamError(str(value.get("reason", "")))
            elif event.type in ("stdout", "stderr"):
                data = decode_bytes(str(value["data"]), str(value["encoding"]))
                return Output(event.type, data, int(value["offset"]))

    async def _next_event(self) -> ServerEvent | None:
        while True:
            try:
                event = await self._source.next()
                self._resumes = 0
                return event
            except ConnectionFailedError:
                if self._ended:  # close() ended the read
                    return None
                self._resumes += 1
                if not self.command_id or self._resumes > _MAX_RESUMES:
                    raise
            headers = {"Last-Event-ID": self._position} if self._position else {}
            try:
                self._source = await self._reopen(self.command_id, headers)
            except ConnectionFailedError as error:
                raise CaissonError(f"the stream of {self.command_id} broke and the server is gone") from error

    async def __aenter__(self) -> AsyncCommandOutput:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Leaves the stream. The command keeps running."""
        self._ended = True
        self._source.close()

    async def wait(self) -> CommandInfo:
        """Reads to the end; how the command ended."""
        async for _ in self:
            pass
        if self.info is None:
            raise StreamError("the stream ended before the command")
        return self.info
