"""A byte stream for asyncio. `_sync/stream.py` is the same for threads; the other modules of _sync are generated."""
from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, TypeVar

from .._endpoint import Endpoint
from .._errors import ConnectionFailedError, RequestTimeoutError

_Result = TypeVar("_Result")


async def run_blocking(function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Runs a blocking function without blocking the event loop."""
    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


async def pause(seconds: float) -> None:
    await asyncio.sleep(seconds)


class Stream:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._reading: asyncio.Future[bytes] | None = None

    @classmethod
    async def connect(cls, endpoint: Endpoint, tls: ssl.SSLContext | None, timeout: float) -> Stream:
        """Raises FileNotFoundError or ConnectionRefusedError if there is no server."""
        if endpoint.socket:
            opening: Any = asyncio.open_unix_connection(endpoint.socket)
        else:
            context = (tls or ssl.create_default_context()) if endpoint.tls else None
            opening = asyncio.open_connection(endpoint.host, endpoint.port, ssl=context)
        try:
            reader, writer = await asyncio.wait_for(opening, timeout)
        except asyncio.TimeoutError:
            raise RequestTimeoutError(f"cannot connect to {endpoint} within {timeout:g} s") from None
        return cls(reader, writer)

    async def read(self, timeout: float | None) -> bytes:
        """Returns some bytes; none at the end. If a call is cancelled, the next one returns the data."""
        # Not wait_for(): it may lose a cancellation that arrives together with data (Python 3.11).
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._reader.read(64 << 10))
        await asyncio.wait({self._reading}, timeout=timeout)
        if not self._reading.done():
            raise RequestTimeoutError(f"the server sent nothing for {timeout:g} s")
        reading, self._reading = self._reading, None
        if reading.cancelled():
            raise ConnectionFailedError("the connection was closed meanwhile")
        try:
            return reading.result()
        except OSError as error:
            raise ConnectionFailedError(f"the connection broke: {error}") from error

    async def write(self, data: bytes, timeout: float | None) -> None:
        try:
            self._writer.write(data)
            await asyncio.wait_for(self._writer.drain(), timeout)
        except asyncio.TimeoutError:
            raise RequestTimeoutError(f"the server read nothing for {timeout:g} s") from None
        except OSError as error:
            raise ConnectionFailedError(f"the connection broke: {error}") from error

    def is_stale(self) -> bool:
        """Whether the server closed the connection while it was idle."""
        return self._reader.at_eof() or self._writer.is_closing()

    def close(self) -> None:
        if self._reading is not None and not self._reading.cancel() and not self._reading.cancelled():
            self._reading.exception()  # otherwise asyncio logs that the exception was never retrieved
        self._writer.close()
