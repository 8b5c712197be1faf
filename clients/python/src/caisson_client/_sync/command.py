# Generated from _async/command.py by tools/make_sync.py. Edit that file.
"""A command in the background, running or finished."""
from __future__ import annotations

import base64
from typing import Any

from .._models import CommandInfo, build
from .client import Client, quote
from .http import EventSource
from .streams import CommandOutput


def input_fields(data: str | bytes, name: str, encoding: str) -> dict[str, Any]:
    """The input as fields of a request; bytes that are not text are sent as base64."""
    if isinstance(data, str):
        return {name: data}
    return {name: base64.b64encode(data).decode(), encoding: "base64"}


class Command:
    """A command of a sandbox, by its id. It keeps running when this object or its connection is closed."""

    def __init__(self, client: Client, sandbox_id: str, id: str) -> None:
        self.id = id
        self._client = client
        self._sandbox_id = sandbox_id
        self._path = f"/v1/sandboxes/{quote(sandbox_id)}/commands/{quote(id)}"

    def info(self) -> CommandInfo:
        return build(CommandInfo, self._client.request("GET", self._path))

    def output(self, *, stdout_offset: int = 0, stderr_offset: int = 0, follow: bool = True) -> CommandOutput:
        """The output from these offsets on. follow: wait for more output until the command ends."""
        query = {"stdout_offset": stdout_offset, "stderr_offset": stderr_offset, "follow": follow}
        source = self._client.open_events(f"{self._path}/output", query=query)

        def reopen(_: str, headers: dict[str, str]) -> EventSource:
            return self._client.open_events(f"{self._path}/output", query=query, headers=headers)

        return CommandOutput(source, reopen, self.id, follow)

    def wait(self) -> CommandInfo:
        """Waits until the command ends."""
        info = self.info()
        if not info.running:
            return info
        rest = self.output(stdout_offset=info.stdout_bytes, stderr_offset=info.stderr_bytes)
        return rest.wait()

    def write(self, data: str | bytes, *, close: bool = False) -> None:
        """Writes to standard input; the command must have been started with `keep_stdin`. close: close it afterwards."""
        body = {**input_fields(data, "data", "encoding"), "close": close}
        self._client.request("POST", f"{self._path}/stdin", json=body)

    def signal(self, signal: str) -> None:
        """Sends a signal, for example TERM."""
        self._client.request("POST", f"{self._path}/signal", json={"signal": signal})

    def kill(self) -> None:
        """Kills the command and all its child processes."""
        self._client.request("DELETE", self._path)
