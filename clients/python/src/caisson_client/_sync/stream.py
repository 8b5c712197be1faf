"""A connection as bytes, for threads. `_async/stream.py` is the same for asyncio."""
from __future__ import annotations

import select
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any, TypeVar

from .._endpoint import Endpoint
from .._errors import ConnectionFailedError, RequestTimeoutError

_Result = TypeVar("_Result")


def run_blocking(function: Callable[..., _Result], *arguments: Any) -> _Result:
    return function(*arguments)


def pause(seconds: float) -> None:
    time.sleep(seconds)


class Stream:
    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    @classmethod
    def connect(cls, endpoint: Endpoint, tls: ssl.SSLContext | None, timeout: float) -> Stream:
        """Raises FileNotFoundError or ConnectionRefusedError if there is no server."""
        try:
            if endpoint.socket:
                connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                try:
                    connected.settimeout(timeout)
                    connected.connect(endpoint.socket)
                except BaseException:
                    connected.close()
                    raise
                return cls(connected)
            connected = socket.create_connection((endpoint.host, endpoint.port), timeout)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if endpoint.tls:
                context = tls or ssl.create_default_context()
                connected = context.wrap_socket(connected, server_hostname=endpoint.host)
            return cls(connected)
        except socket.timeout:
            raise RequestTimeoutError(f"cannot connect to {endpoint} within {timeout:g} s") from None

    def read(self, timeout: float | None) -> bytes:
        """Some bytes; none at the end."""
        try:
            self._socket.settimeout(timeout)
            return self._socket.recv(64 << 10)
        except socket.timeout:
            raise RequestTimeoutError(f"the server sent nothing for {timeout:g} s") from None
        except OSError as error:
            raise ConnectionFailedError(f"the connection broke: {error}") from error

    def write(self, data: bytes, timeout: float | None) -> None:
        try:
            self._socket.settimeout(timeout)
            self._socket.sendall(data)
        except socket.timeout:
            raise RequestTimeoutError(f"the server read nothing for {timeout:g} s") from None
        except OSError as error:
            raise ConnectionFailedError(f"the connection broke: {error}") from error

    def is_stale(self) -> bool:
        """Whether the server closed the connection while it was idle."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        # Also ends a read() of another thread.
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._socket.close()
