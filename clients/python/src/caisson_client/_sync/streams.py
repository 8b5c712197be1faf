# Generated from _async/streams.py by tools/make_sync.py. Edit that file.
"""Iterators over streams of the server."""
from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from .._errors import CaissonError, ConnectionFailedError, StreamError, TooManyRequestsError, UnavailableError
from .._models import CommandInfo, Output, build, decode_bytes
from .._wire import ServerEvent
from .http import EventSource
from .stream import pause

_Item = TypeVar("_Item")
_RESUME_TIMEOUT = 30.0  # seconds without an event during which a broken stream is reopened
_PAUSE = 0.05
_MAX_PAUSE = 1.0


class Events(Generic[_Item]):
    """Iterates over the items of an endless stream: leave the loop and call close()."""

    def __init__(self, source: EventSource, decode: Callable[[ServerEvent], _Item]) -> None:
        self._source, self._decode = source, decode
        self._closed = False

    def __iter__(self) -> Events[_Item]:
        return self

    def __next__(self) -> _Item:
        try:
            event = None if self._closed else self._source.next()
        except ConnectionFailedError:
            if not self._closed:  # otherwise close() ended the read
                raise
            event = None
        if self._closed:
            raise StopIteration
        if event is None:
            raise ConnectionFailedError("the server ended the stream")
        if event.type == "error":
            self.close()
            raise StreamError(str(json.loads(event.data).get("reason", "")))
        return self._decode(event)

    def __enter__(self) -> Events[_Item]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the stream, also for a loop that waits in another thread or task."""
        self._closed = True
        self._source.close()


class CommandOutput:
    """Iterates over the output of a command, in pieces, until it ends; then `info` has the result.

    If the connection breaks, it continues at the same offset or raises ConnectionFailedError. If a read is cancelled, the
    next one continues at the same offset.
    """

    def __init__(self, source: EventSource, reopen: Callable[[str, dict[str, str]], Any], command_id: str = "",
                 follow: bool = True) -> None:
        #: The id of the command; set when the first event arrives.
        self.command_id = command_id
        #: The state of the command after its end; None before.
        self.info: CommandInfo | None = None
        self._source, self._reopen, self._follow = source, reopen, follow
        self._position = ""
        self._ended = False
        self._opened_at = time.monotonic()
        self._attempts = 0  # to reopen it since the last event
        self._broken_at = self._retry_at = 0.0

    def __iter__(self) -> CommandOutput:
        return self

    def __next__(self) -> Output:
        while True:
            if self._ended:
                raise StopIteration
            event = self._next_event()
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

    def _next_event(self) -> ServerEvent | None:
        """Returns None after close(), and at the end of a stream that does not wait for the command."""
        while True:
            broken = ConnectionFailedError("the server ended the stream before the command")
            try:
                event = self._source.next()
                if event is not None:
                    self._attempts = 0
                    return event
                if not self._follow:
                    return None
            except ConnectionFailedError as error:
                broken = error
            if self._ended:  # close() ended the read
                return None
            self._resume(broken)

    def _resume(self, broken: CaissonError) -> None:
        """Reopens the stream after the last event. If a call is cancelled, the next one continues its work."""
        if not self.command_id:
            raise ConnectionFailedError("the stream broke before the command's id arrived; the command may run") from broken
        now = time.monotonic()
        if now - self._opened_at > _RESUME_TIMEOUT:
            self._attempts = 0  # the broken connection had worked
        if self._attempts == 0:
            self._broken_at, self._retry_at = now, now
        headers = {"Last-Event-ID": self._position} if self._position else {}
        while not self._ended:
            now = time.monotonic()
            if self._attempts > 0 and now - self._broken_at > _RESUME_TIMEOUT:
                raise ConnectionFailedError(f"the stream of {self.command_id} broke and cannot be continued: {broken}") from broken
            if now < self._retry_at:
                pause(self._retry_at - now)
            self._attempts += 1
            self._retry_at = time.monotonic() + min(self._attempts * _PAUSE, _MAX_PAUSE)
            try:
                self._source = self._reopen(self.command_id, headers)
            except (ConnectionFailedError, TooManyRequestsError, UnavailableError) as error:
                broken = error  # the server is starting, or still has the old connection
                continue
            self._opened_at = time.monotonic()
            if self._ended:  # closed meanwhile
                self._source.close()
            return

    def __enter__(self) -> CommandOutput:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the stream. The command keeps running."""
        self._ended = True
        self._source.close()

    def wait(self) -> CommandInfo:
        """Reads to the end and returns the state of the command."""
        for _ in self:
            pass
        if self.info is None:
            raise StreamError("the stream ended before the command")
        return self.info
