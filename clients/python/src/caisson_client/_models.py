"""The objects that the server returns. Unknown members are ignored; times are seconds since 1970."""
from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from ._errors import ProtocolError

Json = dict[str, Any]
_Model = TypeVar("_Model")


def build(model: type[_Model], value: Any) -> _Model:
    """Builds an object of this class from JSON; fields with the metadata "of" are lists of another class."""
    if not isinstance(value, dict):
        raise ProtocolError(f"expected an object for {model.__name__}")
    source = cast(Json, value)
    known: Json = {}
    for one in dataclasses.fields(model):  # type: ignore[arg-type]
        if one.name not in source:
            continue
        inner: Any = one.metadata.get("of")
        known[one.name] = [build(inner, item) for item in source[one.name]] if inner else source[one.name]
    try:
        return model(**known)
    except TypeError as error:
        raise ProtocolError(f"incomplete {model.__name__}: {error}") from error


def decode_bytes(text: str, encoding: str) -> bytes:
    """Decodes output of a command, which is base64 if it is not UTF-8."""
    return base64.b64decode(text) if encoding == "base64" else text.encode()


def decode_path(value: Json, member: str) -> Json:
    """Returns the object with the name, path or list of paths in this member as text, also if it is not UTF-8."""
    if value.get(f"{member}_encoding") != "base64":
        return value
    found = value[member]
    if not isinstance(found, list):
        return {**value, member: _decode_name(found)}
    return {**value, member: [_decode_name(one) for one in cast("list[Any]", found)]}


def _decode_name(text: Any) -> str:
    return base64.b64decode(str(text)).decode("utf-8", "surrogateescape")


def decode_diff(value: Json) -> Json:
    """A diff with paths and patches as text."""
    changes = value.get("changes", [])
    for member in ("path", "old_path", "patch"):
        changes = [decode_path(one, member) for one in changes]
    return {**value, "changes": changes}


def decode_commit(value: Json) -> Json:
    """A commit with all paths as text."""
    lists = ("applied", "conflicts", "held", "skipped")
    return {**decode_path(value, "kept"),
            **{name: [decode_path(one, "path") for one in value[name]] for name in lists if name in value}}


def encode_paths(paths: Mapping[str, str | Sequence[str] | None]) -> Json:
    """Paths and lists of paths as fields of a request; if one of them is not UTF-8, all are sent as base64."""
    given: dict[str, str | Sequence[str]] = {name: value for name, value in paths.items() if value is not None}
    texts = [text for value in given.values() for text in ([value] if isinstance(value, str) else value)]
    if not any("\udc80" <= letter <= "\udcff" for text in texts for letter in text):
        return dict(given)
    encoded = {name: _encode_name(value) if isinstance(value, str) else [_encode_name(one) for one in value]
               for name, value in given.items()}
    return {**encoded, "encoding": "base64"}


def _encode_name(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()


def _list_of(model: type) -> Any:
    empty: Any = list
    return field(default_factory=empty, metadata={"of": model})


def _items() -> Any:
    empty: Any = list
    return field(default_factory=empty)


def _members() -> Any:
    empty: Any = dict
    return field(default_factory=empty)


@dataclass(frozen=True)
class SandboxInfo:
    id: str
    name: str
    labels: dict[str, str]
    state: str  #: running, stopped, expired or damaged
    created: int
    expires_in: float
    sandbox_timeout: float = 0
    command_timeout: float = 0
    workspace: str = ""
    profile: str = ""
    template: str = ""
    network: str = ""
    allowed_hosts: list[str] = _items()
    policy: Json = _members()
    problem: str = ""


@dataclass(frozen=True)
class SandboxList:
    sandboxes: list[SandboxInfo] = _list_of(SandboxInfo)
    next_cursor: str | None = None  #: `cursor` of the next page; None: this is the last one


@dataclass(frozen=True)
class CommandInfo:
    id: str
    args: list[str]
    started: int
    running: bool
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    stdout_dropped_bytes: int = 0
    stderr_dropped_bytes: int = 0
    args_truncated: bool = False  #: in a list: only the first 4 KiB of the arguments are included
    outcome: str | None = None  #: exited, signaled, limit, denied, setup_failed or cancelled; None while it runs
    exit_code: int | None = None
    signal: int | None = None
    limit: str | None = None
    duration_ms: float = 0
    usage: Json = _members()


@dataclass(frozen=True)
class RunResult:
    version: int
    sandbox_id: str
    outcome: str  #: exited, signaled, limit, denied, setup_failed or cancelled
    exit_code: int | None
    signal: int | None
    limit: str | None  #: the limit that ended it: time, cpu, memory, processes, disk, file_size, output
    stdout: str  #: bytes that are not UTF-8 are replaced; `stdout_raw` has them
    stderr: str
    stdout_raw: bytes = field(default=b"", repr=False)
    stderr_raw: bytes = field(default=b"", repr=False)
    truncated: Json = _members()
    duration_ms: float = 0
    usage: Json = _members()
    denials: list[Json] = _items()
    violations: list[Json] = _items()
    layers: dict[str, str] = _members()
    warnings: list[str] = _items()
    error: Json | None = None

    @property
    def ok(self) -> bool:
        """Whether the command exited with status 0."""
        return self.outcome == "exited" and self.exit_code == 0


def run_result(value: Any) -> RunResult:
    source: Json = dict(value)
    for name in ("stdout", "stderr"):
        raw = decode_bytes(str(source.get(name, "")), str(source.get(f"{name}_encoding", "utf-8")))
        source[f"{name}_raw"], source[name] = raw, raw.decode("utf-8", "replace")
    return build(RunResult, source)


@dataclass(frozen=True)
class Output:
    """A piece of a command's output."""

    stream: str  #: stdout or stderr
    data: bytes
    offset: int  #: offset of its first byte in the stream

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


@dataclass(frozen=True)
class FileInfo:
    name: str  #: bytes that are not UTF-8 are lone surrogates, as in names of os.listdir(); valid in every path argument
    type: str
    size: int
    mode: int = 0
    modified: int = 0


@dataclass(frozen=True)
class FileChange:
    kind: str  #: created, modified or deleted
    path: str  #: as FileInfo.name
    type: str = ""
    size: int = 0


@dataclass(frozen=True)
class Checkpoint:
    name: str
    created: int


@dataclass(frozen=True)
class Change:
    path: str  #: as FileInfo.name
    kind: str  #: added, modified or deleted
    type: str
    old_path: str = ""
    size: int = 0
    binary: bool = False
    added_lines: int = 0
    removed_lines: int = 0
    patch: str = ""  #: bytes that are not UTF-8 are lone surrogates
    omitted: str = ""


@dataclass(frozen=True)
class Diff:
    changes: list[Change] = _list_of(Change)
    truncated: bool = False


@dataclass(frozen=True)
class Commit:
    digest: str
    applied: list[Json]
    bytes: int = 0
    conflicts: list[Json] = _items()
    held: list[Json] = _items()
    skipped: list[Json] = _items()
    kept: list[str] = _items()
    consistent: bool = True
    searched: bool = True
    applied_not_listed: int = 0  #: how many did not fit into the list; the digest covers them
    conflicts_not_listed: int = 0
    held_not_listed: int = 0
    skipped_not_listed: int = 0
    kept_not_listed: int = 0


@dataclass(frozen=True)
class Port:
    port: int
    host_port: int
    preview_url: str = ""


@dataclass(frozen=True)
class NetworkInfo:
    mode: str
    allowed_hosts: list[str]


@dataclass(frozen=True)
class Approval:
    id: str
    what: str
    state: str  #: pending, allowed or denied
    meaning: str = ""
    sandbox_id: str = ""
    digest: str = ""  #: the digest of a commit; the approval is only for this commit
    caller: str = ""
    asked: int = 0
    #: What a commit writes: kind, path, size; `caution` if the host may execute it later. Names are escaped.
    changes: list[Json] = _items()
    changes_total: int = 0
    changes_not_listed: int = 0
    changes_with_caution: int = 0


@dataclass(frozen=True)
class PolicyCheck:
    valid: bool
    errors: list[Json]
    widenings: list[Json] = _items()
    explanation: str = ""


@dataclass(frozen=True)
class Policy:
    name: str
    policy: Json
    explanation: str = ""


@dataclass(frozen=True)
class AuditRecord:
    seq: int
    time: str
    event: str
    severity: str
    sandbox_id: str = ""
    data: Json = _members()


@dataclass(frozen=True)
class Event:
    """A lifecycle event."""

    id: int
    type: str
    time: str = ""
    sandbox_id: str = ""
    data: Json = _members()


@dataclass(frozen=True)
class Caller:
    id: str
    name: str
    owner: bool
    scopes: str
