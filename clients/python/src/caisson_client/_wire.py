"""HTTP/1.1, server-sent events and WebSocket frames as pure functions of bytes."""
from __future__ import annotations

import base64
import hashlib
import os
import struct
from dataclasses import dataclass

from ._errors import ProtocolError

MAX_HEAD = 64 << 10
MAX_EVENT = 64 << 20
MAX_FRAME = 16 << 20
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def render_head(method: str, target: str, headers: dict[str, str]) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise ProtocolError("a header value contains a line break")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "strict")


def parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    """Returns status and headers, with names in lower case."""
    lines = head.decode("latin-1").split("\r\n")
    parts = lines[0].split(" ", 2)
    if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or len(parts[1]) != 3 or not parts[1].isdigit():
        raise ProtocolError("the response is not HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    return int(parts[1]), headers


@dataclass(frozen=True)
class ServerEvent:
    """One server-sent event."""

    type: str
    id: str
    data: str


class EventParser:
    """Splits a stream of bytes into server-sent events."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[ServerEvent]:
        *blocks, self._rest = (self._rest + data).split(b"\n\n")
        if len(self._rest) > MAX_EVENT:
            raise ProtocolError("an event of the stream is too large")
        events: list[ServerEvent] = []
        for block in blocks:
            fields = {"event": "message", "id": "", "data": ""}
            lines: list[str] = []
            for line in block.decode("utf-8", "replace").split("\n"):
                name, _, value = line.partition(":")
                value = value[1:] if value.startswith(" ") else value
                if name == "data":
                    lines.append(value)
                elif name in fields:
                    fields[name] = value
            if lines:
                events.append(ServerEvent(fields["event"], fields["id"], "\n".join(lines)))
        return events


def new_socket_key() -> str:
    return base64.b64encode(os.urandom(16)).decode()


def accept_key(key: str) -> str:
    digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
    return base64.b64encode(digest).decode()


def make_frame(opcode: int, payload: bytes) -> bytes:
    """A client frame, which is always masked."""
    size = len(payload)
    head = bytes([0x80 | opcode])
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 1 << 16:
        head += bytes([0x80 | 126]) + struct.pack(">H", size)
    else:
        head += bytes([0x80 | 127]) + struct.pack(">Q", size)
    mask = os.urandom(4)
    repeated = (mask * (size // 4 + 1))[:size]
    masked = (int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")).to_bytes(size, "big")
    return head + mask + masked


class FrameParser:
    """Splits a stream of bytes into complete messages of a server: pairs of opcode and payload."""

    def __init__(self) -> None:
        self._rest = b""
        self._partial = b""
        self._opcode = 0

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        self._rest += data
        messages: list[tuple[int, bytes]] = []
        while True:
            frame = self._take_frame()
            if frame is None:
                return messages
            final, opcode, payload = frame
            if opcode >= CLOSE:
                messages.append((opcode, payload))
                continue
            if opcode:
                self._opcode, self._partial = opcode, b""
            self._partial += payload
            if len(self._partial) > MAX_FRAME:
                raise ProtocolError("a WebSocket message is too large")
            if final:
                messages.append((self._opcode, self._partial))

    def _take_frame(self) -> tuple[bool, int, bytes] | None:
        rest = self._rest
        if len(rest) < 2:
            return None
        if rest[1] & 0x80 or rest[0] & 0x70:
            raise ProtocolError("malformed WebSocket frame")
        size, begin = rest[1] & 0x7F, 2
        if size >= 126:
            width = 2 if size == 126 else 8
            begin = 2 + width
            if len(rest) < begin:
                return None
            size = int.from_bytes(rest[2:begin], "big")
        if size > MAX_FRAME:
            raise ProtocolError("a WebSocket frame is too large")
        if len(rest) < begin + size:
            return None
        self._rest = rest[begin + size:]
        return bool(rest[0] & 0x80), rest[0] & 0x0F, rest[begin:begin + size]
