"""Errors, by what the caller can do."""
from __future__ import annotations

import json
from typing import Any, cast


class CaissonError(Exception):
    """Base class of all errors of this package."""


class ConnectionFailedError(CaissonError):
    """No server at the address, or the connection broke."""


class RequestTimeoutError(CaissonError):
    """The server sent nothing for `request_timeout` seconds. The server may have executed the request."""


class ProtocolError(CaissonError):
    """The response is not from a caisson server."""


class StreamError(CaissonError):
    """The server ended a stream with an error event."""


class ApiError(CaissonError):
    """The server rejected a request or could not execute it: a problem document (RFC 9457)."""

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        self.status = status
        #: The whole document.
        self.problem = problem
        #: A stable name of the error, for decisions in programs.
        self.code = str(problem.get("code", "unknown"))
        #: The reason, for people.
        self.reason = str(problem.get("reason", problem.get("title", "")))
        #: How to fix it; empty if there is no advice.
        self.try_ = str(problem.get("try", ""))
        super().__init__(f"{self.reason} ({self.code})" + (f": {self.try_}" if self.try_ else ""))


class InvalidRequestError(ApiError):
    """400, 405, 413, 415, 416, 421, 426, 431: invalid request."""


class UnauthorizedError(ApiError):
    """401: no token, or an unknown or expired one."""


class ForbiddenError(ApiError):
    """403: the caller may not do this, or the path leads out of the sandbox."""


class ApprovalRequiredError(ForbiddenError):
    """403: the owner must approve the request first. Repeat it after that."""

    @property
    def approvals(self) -> list[dict[str, Any]]:
        """The approval requests that wait for the owner."""
        return list(self.problem.get("approvals", []))


class NotFoundError(ApiError):
    """404: no such sandbox, command, file or port, or it belongs to another caller."""


class ConflictError(ApiError):
    """409: the current state does not allow the request."""


class TooManyRequestsError(ApiError):
    """429: the token's rate or another quota is used up."""


class DiskFullError(ApiError):
    """507: the sandbox or the host has no space left."""


class UnavailableError(ApiError):
    """Other 5xx: the server cannot execute the request, or not now."""


_BY_STATUS: dict[int, type[ApiError]] = {
    401: UnauthorizedError, 403: ForbiddenError, 404: NotFoundError, 409: ConflictError, 429: TooManyRequestsError,
    507: DiskFullError}


def error_of(status: int, body: bytes) -> ApiError:
    """Returns the error for a response with this status."""
    try:
        value: Any = json.loads(body)
    except ValueError:
        value = None
    if isinstance(value, dict):
        problem = cast("dict[str, Any]", value)
    else:
        problem = {"code": "unknown", "reason": f"HTTP status {status}"}
    kind = _BY_STATUS.get(status, UnavailableError if status >= 500 else InvalidRequestError)
    if kind is ForbiddenError and problem.get("code") == "approval_required":
        kind = ApprovalRequiredError
    return kind(status, problem)
