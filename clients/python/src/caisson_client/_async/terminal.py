"""A terminal in a sandbox, over a WebSocket."""
from __future__ import annotations

import json
from collections import deque
from typing import Any

from .._errors import ConnectionFailedError, ProtocolError
from .._wire import BINARY, CLOSE, PING, PONG, TEXT, FrameParser, accept_key, make_frame, new_socket_key
from .client import AsyncClient
from .http import Response

_MAX_MESSAGE = 32 << 10


class AsyncTerminal:
    """Iterates over the output of the terminal, as bytes, until its command ends; then `result` has the result.

    Closing the terminal ends the command.
    """

    def __init__(self, response: Response, timeout: float) -> None:
        #: The result of the command, as RunResult in JSON; None before its end.
        self.result: dict[str, Any] | None = None
        self._response, self._timeout = response, timeout
        self._parser = FrameParser()
        self._messages = deque(self._parser.feed(response.buffer))
        self._closed = False

    @classmethod
    async def open(cls, client: AsyncClient, path: str, query: dict[str, Any]) -> AsyncTerminal:
        key = new_socket_key()
        headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}
        response = await client.send("GET", path, query=query, headers=headers)
        if response.status != 101 or response.headers.get("sec-websocket-accept") != accept_key(key):
            response.close()
            raise ProtocolError("the server did not open a WebSocket")
        return cls(response, client.request_timeout)

    def __aiter__(self) -> AsyncTerminal:
        return self

    async def __anext__(self) -> bytes:
        while not self._closed:
            while not self._messages:
                data = await self._response.stream.read(None if self._timeout < 30 else self._timeout)
                if not data:
                    if self._closed:  # by another thread or task
                        raise StopAsyncIteration
                    await self.close()
                    raise ConnectionFailedError("the terminal's connection ended without a result")
                self._messages.extend(self._parser.feed(data))
            opcode, payload = self._messages.popleft()
            if opcode == BINARY:
                return payload
            if opcode == TEXT:
                self.result = dict(json.loads(payload))
            elif opcode == PING:
                await self._send(PONG, payload)
            elif opcode == CLOSE:
                await self.close()
                if self.result is None:
                    raise ConnectionFailedError("the server closed the terminal without a result")
        raise StopAsyncIteration

    async def _send(self, opcode: int, payload: bytes) -> None:
        if self._closed:
            raise ConnectionFailedError("the terminal is closed")
        await self._response.stream.write(make_frame(opcode, payload), self._timeout)

    async def write(self, data: str | bytes) -> None:
        """Writes input to the terminal."""
        rest = data.encode() if isinstance(data, str) else data
        while rest:
            await self._send(BINARY, rest[:_MAX_MESSAGE])
            rest = rest[_MAX_MESSAGE:]

    async def resize(self, rows: int, columns: int) -> None:
        await self._send(TEXT, json.dumps({"rows": rows, "columns": columns}).encode())

    async def close(self) -> None:
        if self._closed:
            return
        try:
            await self._send(CLOSE, b"\x03\xe8")
        except ConnectionFailedError:
            pass
        self._closed = True
        self._response.close()

    async def __aenter__(self) -> AsyncTerminal:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
