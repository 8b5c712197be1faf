# Generated from _async/sandbox.py by tools/make_sync.py. Edit that file.
"""A sandbox: commands, files, history, network."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Union

from .._models import (Checkpoint, CommandInfo, Commit, Diff, Json, Port, RunResult, SandboxInfo, build, decode_commit,
                       decode_diff, encode_paths, run_result)
from .client import Client, quote
from .command import Command, input_fields
from .files import Files
from .http import EventSource
from .network import Network
from .streams import CommandOutput
from .terminal import Terminal

#: A shell command line, or a program and its arguments.
CommandLine = Union[str, Sequence[str]]


def _key_header(key: str | None) -> dict[str, str]:
    return {"Idempotency-Key": key} if key is not None else {}


def _command_fields(command: CommandLine, stdin: str | bytes | None, fields: Json) -> Json:
    line: Json = {"command": command} if isinstance(command, str) else {"args": list(command)}
    given = input_fields(stdin, "stdin", "stdin_encoding") if stdin is not None else {}
    return {**line, **given, **fields}


class Sandbox:
    """One sandbox. As a context manager it is destroyed at the end of the block."""

    def __init__(self, client: Client, info: SandboxInfo, owns_client: bool = False) -> None:
        self.client = client
        self.id = info.id
        #: The state at the last create, connect, extend or refresh.
        self.info = info
        self._owns_client = owns_client
        self._path = f"/v1/sandboxes/{quote(info.id)}"
        self.files = Files(client, self._path)
        self.network = Network(client, self._path)

    @classmethod
    def create(cls, *, client: Client | None = None, name: str | None = None,
                     labels: Mapping[str, str] | None = None, template: str | None = None, profile: str | None = None,
                     policy: Mapping[str, Any] | None = None, checkpoint: str | None = None,
                     image: str | None = None, workspace: str | None = None, memory: str | None = None, disk: str | None = None,
                     cpus: float | None = None, environment: Mapping[str, str] | None = None,
                     allowed_hosts: Sequence[str] | None = None, command_timeout: float | None = None,
                     sandbox_timeout: float | None = None, idempotency_key: str | None = None) -> Sandbox:
        """Creates a sandbox.

        client: default Client(): the server in CAISSON_URL, or the user's own.
        template, profile, policy, checkpoint (ID or ID:CHECKPOINT): the base of the sandbox; default: the profile dev.
        image: an image of the server's store as root file system, for example debian:12.
        workspace: a host directory that the server allows; default: empty. Changes stay in the sandbox until commit().
        memory, disk: limits, for example "512M". cpus: share of CPUs.
        allowed_hosts: hosts that it may connect to; with a token, the owner must approve each.
        command_timeout: default for commands: seconds after which a command is killed.
        sandbox_timeout: seconds without a request after which the sandbox ends.
        idempotency_key: a repeated request with the same key returns the sandbox of the first one.
        """
        body = {"name": name, "labels": labels, "template": template, "profile": profile, "policy": policy,
                "checkpoint": checkpoint, "image": image, "workspace": workspace, "memory": memory, "disk": disk, "cpus": cpus,
                "environment": environment, "allowed_hosts": allowed_hosts, "command_timeout": command_timeout,
                "sandbox_timeout": sandbox_timeout}
        used = client or Client()
        try:
            made = used.request("POST", "/v1/sandboxes", json=body, headers=_key_header(idempotency_key))
        except BaseException:
            if client is None:
                used.close()
            raise
        return cls(used, build(SandboxInfo, made), client is None)

    @classmethod
    def connect(cls, id: str, *, client: Client | None = None) -> Sandbox:
        """Connects to an existing sandbox, also one that another program created."""
        used = client or Client()
        try:
            found = used.request("GET", f"/v1/sandboxes/{quote(id)}")
        except BaseException:
            if client is None:
                used.close()
            raise
        return cls(used, build(SandboxInfo, found), client is None)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def refresh(self) -> SandboxInfo:
        """Returns the current state."""
        self.info = build(SandboxInfo, self.client.request("GET", self._path))
        return self.info

    def extend(self, sandbox_timeout: float) -> SandboxInfo:
        """Sets the seconds without a request after which the sandbox ends."""
        body = {"sandbox_timeout": sandbox_timeout}
        self.info = build(SandboxInfo, self.client.request("POST", f"{self._path}/extend", json=body))
        return self.info

    def destroy(self) -> None:
        """Kills all processes of the sandbox and removes its files."""
        try:
            self.client.request("DELETE", self._path)
        finally:
            if self._owns_client:
                self.client.close()

    def run(self, command: CommandLine, *, cwd: str | None = None, environment: Mapping[str, str] | None = None,
                  stdin: str | bytes | None = None, command_timeout: float | None = None,
                  output_limit: int | None = None, idempotency_key: str | None = None) -> RunResult:
        """Runs a command and waits for it. If the command fails, the result has the failure; there is no exception.

        command: a shell command line, or a program and its arguments in a list.
        command_timeout: seconds after which it is killed. output_limit: bytes of each stream in the result.
        """
        body = _command_fields(command, stdin, {"cwd": cwd, "environment": environment,
                                                "command_timeout": command_timeout, "output_limit": output_limit})
        # The server sends nothing while the command runs.
        longest = command_timeout or self.info.command_timeout or 24 * 3600
        made = self.client.request("POST", f"{self._path}/commands", json=body, headers=_key_header(idempotency_key),
                                         timeout=longest + self.client.request_timeout)
        return run_result(made)

    def start(self, command: CommandLine, *, cwd: str | None = None, environment: Mapping[str, str] | None = None,
                    stdin: str | bytes | None = None, keep_stdin: bool = False, command_timeout: float | None = None,
                    idempotency_key: str | None = None) -> Command:
        """Starts a command in the background. keep_stdin: for Command.write()."""
        body = _command_fields(command, stdin, {"cwd": cwd, "environment": environment, "mode": "background",
                                                "command_timeout": command_timeout, "keep_stdin": keep_stdin})
        made = self.client.request("POST", f"{self._path}/commands", json=body, headers=_key_header(idempotency_key))
        return self.command(str(made["id"]))

    def stream(self, command: CommandLine, *, cwd: str | None = None,
                     environment: Mapping[str, str] | None = None, stdin: str | bytes | None = None,
                     keep_stdin: bool = False, command_timeout: float | None = None) -> CommandOutput:
        """Runs a command and returns an iterator over its output."""
        body = _command_fields(command, stdin, {"cwd": cwd, "environment": environment, "mode": "stream",
                                                "command_timeout": command_timeout, "keep_stdin": keep_stdin})
        source = self.client.open_events(f"{self._path}/commands", method="POST", json=body)

        def reopen(id: str, headers: dict[str, str]) -> EventSource:
            return self.client.open_events(f"{self._path}/commands/{quote(id)}/output", headers=headers)

        return CommandOutput(source, reopen)

    def command(self, id: str) -> Command:
        """Returns a command of start() or stream() by its id, to attach to it again."""
        return Command(self.client, self.id, id)

    def commands(self) -> list[CommandInfo]:
        """The commands of start() and stream()."""
        found = self.client.request("GET", f"{self._path}/commands")
        return [build(CommandInfo, one) for one in found["commands"]]

    def terminal(self, command: str | None = None, *, cwd: str | None = None, rows: int = 24, columns: int = 80,
                       command_timeout: float | None = None) -> Terminal:
        """Opens a terminal with this shell command line, or with a shell."""
        query = {"command": command, "cwd": cwd, "rows": rows, "columns": columns, "command_timeout": command_timeout}
        given = {name: value for name, value in query.items() if value is not None}
        return Terminal.open(self.client, f"{self._path}/pty", given)

    def checkpoint(self, name: str | None = None, *, stop: bool = False) -> Checkpoint:
        """Saves the workspace under a name. stop: kill running processes first, instead of ConflictError."""
        body = {"name": name, "stop": stop}
        return build(Checkpoint, self.client.request("POST", f"{self._path}/checkpoints", json=body))

    def checkpoints(self) -> list[Checkpoint]:
        found = self.client.request("GET", f"{self._path}/checkpoints")
        return [build(Checkpoint, one) for one in found["checkpoints"]]

    def restore(self, checkpoint: str, *, stop: bool = False) -> None:
        """Restores the workspace to a checkpoint; "begin" is the initial state."""
        self.client.request("POST", f"{self._path}/restore", json={"checkpoint": checkpoint, "stop": stop})

    def fork(self, *, name: str | None = None, sandbox_timeout: float | None = None,
                   stop: bool = False) -> Sandbox:
        """Creates a second sandbox with the same files."""
        body = {"name": name, "sandbox_timeout": sandbox_timeout, "stop": stop}
        made = self.client.request("POST", f"{self._path}/fork", json=body)
        return Sandbox(self.client, build(SandboxInfo, made))

    def diff(self, *, checkpoint: str | None = None, patch: bool = False, limit: int | None = None) -> Diff:
        """The changes since a checkpoint, or since the initial state. patch: include the content, in git's format."""
        query = {"checkpoint": checkpoint, "patch": patch, "limit": limit}
        given = {name: value for name, value in query.items() if value is not None}
        return build(Diff, decode_diff(self.client.request("GET", f"{self._path}/diff", query=given)))

    def commit(self, *, paths: Sequence[str] | None = None, dry_run: bool = False, expect: str | None = None,
                     stop: bool = False, ours: Sequence[str] | None = None, theirs: Sequence[str] | None = None,
                     merge: Sequence[str] | None = None) -> Commit:
        """Writes changes to the host directory, as one transaction: first with dry_run, then with its digest as `expect`.

        ours, theirs, merge: paths of conflicts: keep the host's file, take the sandbox's file, or merge lines.
        """
        lists = encode_paths({"paths": paths, "ours": ours, "theirs": theirs, "merge": merge})
        body = {"dry_run": dry_run, "expect": expect, "stop": stop, **lists}
        return build(Commit, decode_commit(self.client.request("POST", f"{self._path}/commit", json=body)))

    def expose(self, port: int) -> Port:
        """Publishes a port of the sandbox on the server's loopback interface, and as a preview for browsers."""
        return build(Port, self.client.request("POST", f"{self._path}/ports", json={"port": port}))

    def unexpose(self, port: int) -> None:
        self.client.request("DELETE", f"{self._path}/ports/{port}")

    def ports(self) -> list[Port]:
        """Published ports."""
        return [build(Port, one) for one in (self.client.request("GET", f"{self._path}/ports"))["ports"]]
