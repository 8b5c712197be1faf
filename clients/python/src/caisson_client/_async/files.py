"""Files of a sandbox's workspace. Paths are relative to it, or absolute inside it.

A path is text. Bytes that are not UTF-8 are lone surrogates in it (`surrogateescape`), as in paths of Python's os module.
"""
from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from typing import Any, List, Union

from .._models import FileChange, FileInfo, build, decode_path, encode_paths
from .client import AsyncClient
from .http import Response
from .stream import run_blocking
from .streams import AsyncEvents

_BLOCK = 256 << 10
Content = Union[str, bytes, Iterable[bytes]]


def _blocks(path: str | os.PathLike[str]) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while True:
            block = file.read(_BLOCK)
            if not block:
                return
            yield block


class AsyncFiles:
    def __init__(self, client: AsyncClient, path: str) -> None:
        self._client, self._path = client, f"{path}/files"

    async def read(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """The content of a file, or a part of it."""
        headers: dict[str, str] = {}
        if length == 0:
            return b""
        if offset or length is not None:
            headers["Range"] = f"bytes={offset}-" + ("" if length is None else str(offset + length - 1))
        return await (await self._content(path, headers)).read()

    async def text(self, path: str) -> str:
        """The content of a file as text."""
        return (await self.read(path)).decode("utf-8", "replace")

    async def _content(self, path: str, headers: dict[str, str]) -> Response:
        return await self._client.send("GET", f"{self._path}/content", query={"path": path}, headers=headers)

    async def write(self, path: str, content: Content, *, mode: int | None = None) -> int:
        """Creates or replaces a file, atomically. mode: permission bits, such as 0o755. Returns the size."""
        query: dict[str, Any] = {"path": path}
        if mode is not None:
            query["mode"] = f"{mode:o}"
        body = content.encode() if isinstance(content, str) else content
        return int((await self._client.request("PUT", f"{self._path}/content", query=query, body=body))["size"])

    async def upload(self, source: str | os.PathLike[str], path: str, *, mode: int | None = None) -> int:
        """Copies a local file into the sandbox as a stream, without reading all of it into memory."""
        return await self.write(path, _blocks(source), mode=mode)

    async def download(self, path: str, target: str | os.PathLike[str]) -> int:
        """Copies a file of the sandbox to a local file, which appears only when it is complete. Returns its size."""
        return await _save(await self._content(path, {}), target)

    async def unpack(self, source: str | os.PathLike[str], path: str = ".") -> None:
        """Unpacks a local tar archive into a directory of the sandbox."""
        await self._client.request("PUT", f"{self._path}/archive", query={"path": path}, body=_blocks(source))

    async def pack(self, path: str, target: str | os.PathLike[str], *, command_timeout: float | None = None) -> int:
        """Saves a directory of the sandbox as a local tar archive. Its file names are untrusted: unpack it with care."""
        query = {"path": path} if command_timeout is None else {"path": path, "command_timeout": str(command_timeout)}
        return await _save(await self._client.send("GET", f"{self._path}/archive", query=query), target)

    async def list(self, path: str = ".") -> List[FileInfo]:
        found = await self._client.request("GET", self._path, query={"path": path})
        return [build(FileInfo, decode_path(one, "name")) for one in found["files"]]

    async def stat(self, path: str) -> FileInfo:
        found = await self._client.request("GET", f"{self._path}/stat", query={"path": path})
        return build(FileInfo, decode_path(found, "name"))

    async def move(self, source: str, target: str, *, replace: bool = False) -> None:
        """Renames a file or directory. replace: also if the target exists."""
        body = {**encode_paths({"from": source, "to": target}), "replace": replace}
        await self._client.request("POST", f"{self._path}/move", json=body)

    async def mkdir(self, path: str) -> None:
        """Creates a directory and its parents."""
        await self._client.request("POST", f"{self._path}/mkdir", json=encode_paths({"path": path}))

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        await self._client.request("DELETE", f"{self._path}/content", query={"path": path, "recursive": recursive})

    async def watch(self, path: str = ".") -> AsyncEvents[FileChange]:
        """Watches for changes below a directory. Returns when the server has started to watch."""
        source = await self._client.open_events(f"{self._path}/watch", query={"path": path})
        changes = AsyncEvents(source, lambda event: build(
            FileChange, {"path": "", **decode_path(json.loads(event.data), "path"), "kind": event.type}))
        try:
            async for first in changes:
                if first.kind == "ready":
                    break
        except BaseException:
            await changes.close()
            raise
        return changes


async def _save(response: Response, target: str | os.PathLike[str]) -> int:
    """Writes a partial file and renames it at the end, so that a failed download does not change the target."""
    name: str = os.fspath(target)
    path: str = os.path.realpath(name)
    replaces = not os.path.lexists(path) or os.path.isfile(path)  # not a pipe or device
    part = f"{path}.{secrets.token_hex(6)}.part" if replaces else path
    size = 0
    try:
        with open(part, "xb" if replaces else "wb") as file:
            while True:
                piece = await response.read_piece()
                if not piece:
                    break
                size += len(piece)
                await run_blocking(file.write, piece)
        if replaces:
            if os.path.exists(path):
                shutil.copymode(path, part)
            os.replace(part, path)
    except BaseException:
        response.close()
        if replaces:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(part)
        raise
    return size
