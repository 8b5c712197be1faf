"""Sandboxes of a caisson server.

    from caisson_client import Sandbox

    with Sandbox.create() as sandbox:
        print(sandbox.run("echo hello").stdout)

Without an address it uses the user's own server and starts it if needed. `AsyncSandbox` and `AsyncClient` have the same
methods for asyncio.
"""
from ._async.client import AsyncClient
from ._async.command import AsyncCommand
from ._async.sandbox import AsyncSandbox
from ._async.streams import AsyncEvents, AsyncCommandOutput
from ._async.terminal import AsyncTerminal
from ._errors import (ApiError, ApprovalRequiredError, CaissonError, ConflictError, ConnectionFailedError, DiskFullError,
                      ForbiddenError, InvalidRequestError, NotFoundError, ProtocolError, RequestTimeoutError, StreamError,
                      TooManyRequestsError, UnauthorizedError, UnavailableError)
from ._models import (Approval, AuditRecord, Caller, Change, Checkpoint, CommandInfo, Commit, Diff, Event, FileChange,
                      FileInfo, NetworkInfo, Output, Policy, PolicyCheck, Port, RunResult, SandboxInfo, SandboxList)
from ._sync.client import Client
from ._sync.command import Command
from ._sync.sandbox import Sandbox
from ._sync.streams import CommandOutput, Events
from ._sync.terminal import Terminal

__all__ = [
    "ApiError", "Approval", "ApprovalRequiredError", "AsyncClient", "AsyncCommand", "AsyncEvents", "AsyncCommandOutput",
    "AsyncSandbox", "AsyncTerminal", "AuditRecord", "CaissonError", "Caller", "Change", "Checkpoint", "Client", "Command",
    "CommandInfo", "CommandOutput", "Commit", "ConflictError", "ConnectionFailedError", "Diff", "DiskFullError", "Event",
    "Events", "FileChange", "FileInfo", "ForbiddenError", "InvalidRequestError", "NetworkInfo", "NotFoundError", "Output",
    "Policy", "PolicyCheck", "Port", "ProtocolError", "RequestTimeoutError", "RunResult", "Sandbox", "SandboxInfo",
    "SandboxList", "StreamError", "Terminal", "TooManyRequestsError", "UnauthorizedError", "UnavailableError"]
