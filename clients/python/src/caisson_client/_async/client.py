"""A connection to a caisson server, and the operations that do not belong to one sandbox."""
from __future__ import annotations

import json as json_module
import os
import ssl
import urllib.parse
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, List

from .._endpoint import local_endpoint, parse_url
from .._errors import CaissonError, ConnectionFailedError, error_of
from .._local import find_program, start_server
from .._models import (Approval, AuditRecord, Caller, Event, Json, Policy, PolicyCheck, SandboxList, build)
from .http import Body, EventSource, Response, exchange
from .stream import Stream, pause, run_blocking
from .streams import AsyncEvents

_MAX_IDLE = 16
_MAX_ATTEMPTS = 4
_PAUSE = 0.05


def _drop_none(values: Mapping[str, Any]) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _query_text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


class AsyncClient:
    """Sends requests to one server.

    url: `unix:/PATH`, `http://HOST:PORT` or `https://HOST:PORT`. Default: CAISSON_URL, else the user's own server on its
    unix socket, which is started if it does not run (`start`, with `program`: CAISSON_PROGRAM, else `caisson` in PATH,
    else the program of the wheel `caisson`).
    token: default CAISSON_TOKEN. The owner needs none on the unix socket.
    request_timeout: seconds without a byte from the server after which a request fails.
    tls: a context for custom certificates.
    on_response: called with method, path and status of each response, for logs.
    """

    def __init__(self, url: str | None = None, *, token: str | None = None, request_timeout: float = 60,
                 start: bool = True, start_timeout: float = 30, program: str | None = None,
                 tls: ssl.SSLContext | None = None,
                 on_response: Callable[[str, str, int], None] | None = None) -> None:
        url = url or os.environ.get("CAISSON_URL") or None
        self.endpoint = parse_url(url) if url else local_endpoint()
        self.request_timeout = request_timeout
        self.approvals = AsyncApprovals(self)
        self.policies = AsyncPolicies(self)
        self.audit = AsyncAudit(self)
        self._token = token or os.environ.get("CAISSON_TOKEN") or None
        self._start = start and url is None
        self._start_timeout = start_timeout
        self._program = program or os.environ.get("CAISSON_PROGRAM") or find_program()
        self._tls = tls
        self._on_response = on_response
        self._idle: deque[Stream] = deque(maxlen=None)
        if self._token and not self.endpoint.is_private:
            raise CaissonError(f"refused to send a token unencrypted to {self.endpoint}: use https")

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes idle connections. The server and its sandboxes keep running."""
        while self._idle:
            self._idle.pop().close()

    def _take_idle(self) -> Stream | None:
        while len(self._idle) > _MAX_IDLE:
            self._idle.popleft().close()
        while self._idle:
            stream = self._idle.pop()
            if not stream.is_stale():
                return stream
            stream.close()
        return None

    async def _connect(self) -> Stream:
        attempts = _MAX_ATTEMPTS if self._start else 1  # a server that is shutting down may still accept connections
        for attempt in range(1, attempts + 1):
            try:
                return await Stream.connect(self.endpoint, self._tls, self.request_timeout)
            except (FileNotFoundError, ConnectionRefusedError) as error:
                if attempt == attempts:
                    raise ConnectionFailedError(f"no server at {self.endpoint}: {error.strerror}") from error
            except OSError as error:
                raise ConnectionFailedError(f"cannot connect to {self.endpoint}: {error}") from error
            await run_blocking(start_server, self._program, self.endpoint, self._start_timeout)
        raise ConnectionFailedError(f"no server at {self.endpoint}")

    async def send(self, method: str, path: str, *, query: Mapping[str, Any] | None = None,
                   json: Mapping[str, Any] | None = None, body: Body = None, headers: Mapping[str, str] | None = None,
                   timeout: float | None = None) -> Response:
        """Sends one request. Raises ApiError unless the status is 1xx or 2xx. The response body is not read yet."""
        target = path
        if query:
            target += "?" + urllib.parse.urlencode({name: _query_text(value) for name, value in query.items()},
                                                   quote_via=urllib.parse.quote, errors="surrogateescape")
        head = {"Host": self.endpoint.authority, "User-Agent": "caisson-client-python/0.2"}
        if self._token:
            head["Authorization"] = f"Bearer {self._token}"
        if json is not None:
            head["Content-Type"] = "application/json"
            body = json_module.dumps(_drop_none(json)).encode()
        elif body is not None:
            head["Content-Type"] = "application/octet-stream"
        head.update(headers or {})
        response = await self._exchange(method, target, head, body, timeout or self.request_timeout)
        if self._on_response is not None:
            self._on_response(method, path, response.status)
        if response.status >= 300:
            raise error_of(response.status, await response.read())
        return response

    async def _exchange(self, method: str, target: str, head: dict[str, str], body: Body, timeout: float) -> Response:
        """Repeats idempotent requests, because the server may close an idle connection, or exit, at any time."""
        whole = body is None or isinstance(body, bytes)
        repeatable = whole and (method in ("GET", "PUT") or "Idempotency-Key" in head)
        attempts = _MAX_ATTEMPTS if repeatable else 1
        for attempt in range(1, attempts + 1):
            stream = self._take_idle() or await self._connect()
            try:
                response = await exchange(self._idle, stream, method, target, head, body, timeout)
            except ConnectionFailedError:
                if attempt == attempts:
                    raise
                response = None
            if response is not None:
                return response
            if attempt < attempts:
                await pause(attempt * _PAUSE)
        raise ConnectionFailedError("the connection ended before the response; the request may have been handled")

    async def request(self, method: str, path: str, **options: Any) -> Any:
        """Sends one request and returns the JSON response, None if it is empty. For routes without a method here."""
        response = await self.send(method, path, **options)
        if response.status == 204:
            await response.read()
            return None
        return await response.json()

    async def open_events(self, path: str, *, method: str = "GET", **options: Any) -> EventSource:
        headers = {"Accept": "text/event-stream", **options.pop("headers", {})}
        return EventSource(await self.send(method, path, headers=headers, **options))

    async def sandboxes(self, *, label: str | None = None, name: str | None = None, limit: int | None = None,
                        cursor: str | None = None) -> SandboxList:
        """The caller's sandboxes, oldest first. label: NAME or NAME=VALUE."""
        query = _drop_none({"label": label, "name": name, "limit": limit, "cursor": cursor})
        return build(SandboxList, await self.request("GET", "/v1/sandboxes", query=query))

    async def events(self, *, after: int | None = None) -> AsyncEvents[Event]:
        """Lifecycle events from now on, or after the event of this id."""
        source = await self.open_events("/v1/events", query=_drop_none({"after": after}))
        return AsyncEvents(source, lambda event: build(Event, json_module.loads(event.data)))

    async def whoami(self) -> Caller:
        return build(Caller, await self.request("GET", "/v1/whoami"))

    async def stats(self) -> Json:
        """Statistics of the server. Needs the scope admin."""
        return dict(await self.request("GET", "/v1/stats"))

    async def templates(self) -> List[Json]:
        """Templates that sandboxes can be created from, and how many are ready in their pools."""
        return list((await self.request("GET", "/v1/templates"))["templates"])

    async def images(self) -> List[Json]:
        """Images that sandboxes can start from."""
        return list((await self.request("GET", "/v1/images"))["images"])

    async def health(self) -> bool:
        """Whether the server runs."""
        return bool((await self.request("GET", "/healthz"))["status"] == "ok")

    async def ready(self) -> bool:
        """Checks whether the server can create sandboxes; if not, UnavailableError has the reason."""
        return bool((await self.request("GET", "/readyz"))["status"] == "ready")

    async def metrics(self) -> str:
        """Metrics in the Prometheus format. Needs the scope admin."""
        return (await (await self.send("GET", "/metrics")).read()).decode()

    async def openapi(self) -> Json:
        """The OpenAPI document of the server."""
        return dict(await self.request("GET", "/v1/openapi.json"))


class AsyncApprovals:
    """Approval requests to the owner."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def list(self) -> List[Approval]:
        """All requests if the caller is the owner, otherwise only the caller's."""
        return [build(Approval, one) for one in (await self._client.request("GET", "/v1/approvals"))["approvals"]]

    async def get(self, id: str) -> Approval:
        return build(Approval, await self._client.request("GET", f"/v1/approvals/{quote(id)}"))

    async def answer(self, id: str, decision: str, *, seconds: int | None = None) -> Approval:
        """decision: allow or deny. Only for the owner, on the unix socket. seconds: how long the decision is valid."""
        body = {"decision": decision, "seconds": seconds}
        return build(Approval, await self._client.request("POST", f"/v1/approvals/{quote(id)}", json=body))


class AsyncPolicies:
    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def list(self) -> List[str]:
        """The names of the built-in profiles."""
        return [str(one["name"]) for one in (await self._client.request("GET", "/v1/policies"))["profiles"]]

    async def get(self, profile: str) -> Policy:
        """A profile as a document, with an explanation."""
        return build(Policy, await self._client.request("GET", f"/v1/policies/{quote(profile)}"))

    async def check(self, policy: Mapping[str, Any]) -> PolicyCheck:
        """The errors of a policy document, or its explanation."""
        return build(PolicyCheck, await self._client.request("POST", "/v1/policies/check", json={"policy": policy}))


class AsyncAudit:
    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def query(self, *, sandbox: str | None = None, event: str | None = None, after: int | None = None,
                    limit: int | None = None) -> List[AuditRecord]:
        """The newest records about the caller's sandboxes, oldest first."""
        query = _drop_none({"sandbox": sandbox, "event": event, "after": after, "limit": limit})
        found = await self._client.request("GET", "/v1/audit", query=query)
        return [build(AuditRecord, one) for one in found["records"]]

    async def stream(self) -> AsyncEvents[AuditRecord]:
        """New records."""
        source = await self._client.open_events("/v1/audit/stream")
        return AsyncEvents(source, lambda event: build(AuditRecord, json_module.loads(event.data)))


def quote(part: str) -> str:
    """Encodes a value as one path segment."""
    return urllib.parse.quote(part, safe="")
