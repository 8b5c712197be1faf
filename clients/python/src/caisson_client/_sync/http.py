# Generated from _async/http.py by tools/make_sync.py. Edit that file.
"""HTTP/1.1 requests over persistent connections."""
from __future__ import annotations

import json as json_module
from collections import deque
from collections.abc import Iterable
from typing import Any, Union

from .._errors import CaissonError, ConnectionFailedError, ProtocolError, RequestTimeoutError
from .._wire import MAX_HEAD, EventParser, ServerEvent, parse_head, render_head
from .stream import Stream

Body = Union[bytes, Iterable[bytes], None]


class Response:
    """A response whose body has not been read yet."""

    def __init__(self, pool: deque[Stream], stream: Stream, method: str, timeout: float | None) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.stream = stream
        self.buffer = b""
        self._pool, self._method, self._timeout = pool, method, timeout
        self._left: int | None = 0  # bytes of the body, or of the chunk; None: until the connection ends
        self._chunked = False
        self._after_chunk = False  # the line break that ends a chunk is still to be read
        self._in_trailer = False
        self._ended = False
        self._dropped = False

    def _fill(self) -> bool:
        data = self.stream.read(self._timeout)
        self.buffer += data
        return bool(data)

    def read_head(self) -> bool:
        """Returns False if the connection ended before the first byte."""
        while b"\r\n\r\n" not in self.buffer:
            if len(self.buffer) > MAX_HEAD:
                raise ProtocolError("the response head is too large")
            if not self._fill():
                if self.buffer:
                    raise ConnectionFailedError("the connection ended in the response head")
                return False
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        self.status, self.headers = parse_head(head)
        if self.status == 100:
            return self.read_head()
        self._chunked = self.headers.get("transfer-encoding", "").lower() == "chunked"
        length = self.headers.get("content-length")
        if self._method == "HEAD" or self.status in (204, 304):
            self._left = 0
        elif self._chunked:
            self._left = 0
        elif length is not None:
            if not length.isdigit():
                raise ProtocolError("malformed Content-Length")
            self._left = int(length)
        elif self.status != 101:
            self._left = None
        if not self._chunked and self._left == 0 and self.status != 101:
            self._finish()
        return True

    def _read_line(self) -> bytes:
        while b"\r\n" not in self.buffer:
            if len(self.buffer) > MAX_HEAD or not self._fill():
                raise ConnectionFailedError("the connection ended in the response body")
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line

    def _begin_chunk(self) -> None:
        if self._after_chunk:
            self._read_line()
            self._after_chunk = False
        if not self._in_trailer:
            size = (self._read_line()).split(b";")[0].strip()
            try:
                self._left = int(size, 16)
            except ValueError:
                raise ProtocolError("malformed chunk") from None
            self._in_trailer = self._left == 0
        if self._in_trailer:
            while self._read_line():
                pass
            self._finish()

    def read_piece(self) -> bytes:
        """Returns some bytes of the body; none at its end. If a call is cancelled, no data is lost."""
        if self._dropped:
            raise ConnectionFailedError("the response was dropped before its end")
        try:
            if not self._ended and self._chunked and self._left == 0:
                self._begin_chunk()
            if self._ended:
                return b""
            if not self.buffer and not self._fill():
                if self._left is not None:
                    raise ConnectionFailedError("the connection ended in the response body")
                self._finish()
                return b""
            piece = self.buffer if self._left is None else self.buffer[:self._left]
            self.buffer = self.buffer[len(piece):]
            if self._left is not None:
                self._left -= len(piece)
                if self._left == 0 and self._chunked:
                    self._after_chunk = True
                elif self._left == 0:
                    self._finish()
            return piece
        except CaissonError:
            self.close()
            raise

    def read(self) -> bytes:
        """The whole body."""
        pieces: list[bytes] = []
        try:
            while True:
                piece = self.read_piece()
                if not piece:
                    return b"".join(pieces)
                pieces.append(piece)
        except BaseException:
            self.close()
            raise

    def json(self) -> Any:
        body = self.read()
        try:
            return json_module.loads(body)
        except ValueError:
            raise ProtocolError("the response is not JSON") from None

    def _finish(self) -> None:
        """Called when the body is complete: the connection is reused unless the server closes it after this response."""
        if self._ended:
            return
        self._ended = True
        keeps = self._left is not None and self.headers.get("connection", "").lower() != "close" and not self.buffer
        if keeps:
            self._pool.append(self.stream)
        else:
            self.stream.close()

    def close(self) -> None:
        """Discards the rest of the body and closes the connection."""
        if not self._ended:
            self._ended = self._dropped = True
            self.stream.close()


def exchange(pool: deque[Stream], stream: Stream, method: str, target: str, headers: dict[str, str], body: Body,
                   timeout: float | None) -> Response | None:
    """Sends a request and reads the response head. Returns None if the connection ended before the first byte."""
    response = Response(pool, stream, method, timeout)
    try:
        broken: CaissonError | None = None
        try:
            if body is None or isinstance(body, bytes):
                if body is not None:
                    headers = {**headers, "Content-Length": str(len(body))}
                stream.write(render_head(method, target, headers) + (body or b""), timeout)
            else:
                stream.write(render_head(method, target, {**headers, "Transfer-Encoding": "chunked"}), timeout)
                for piece in body:
                    if piece:
                        stream.write(b"%x\r\n%b\r\n" % (len(piece), piece), timeout)
                stream.write(b"0\r\n\r\n", timeout)
        except ConnectionFailedError as error:
            broken = error  # the server may have rejected the body and closed: read its response
        try:
            if response.read_head():
                return response
        except (ConnectionFailedError, RequestTimeoutError):
            if broken is None:
                raise
        stream.close()
        return None
    except BaseException:
        stream.close()
        raise


class EventSource:
    """The server-sent events of a response."""

    def __init__(self, response: Response) -> None:
        self._response = response
        self._parser = EventParser()
        self._ready: deque[ServerEvent] = deque()

    def next(self) -> ServerEvent | None:
        """Returns None at the end of the stream."""
        while not self._ready:
            piece = self._response.read_piece()
            if not piece:
                return None
            self._ready.extend(self._parser.feed(piece))
        return self._ready.popleft()

    def close(self) -> None:
        self._response.close()
