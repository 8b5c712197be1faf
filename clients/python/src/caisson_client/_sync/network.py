# Generated from _async/network.py by tools/make_sync.py. Edit that file.
"""The hosts that a sandbox may connect to."""
from __future__ import annotations

from .._models import Json, NetworkInfo, build
from .client import Client


class Network:
    def __init__(self, client: Client, path: str) -> None:
        self._client, self._path = client, path

    def get(self) -> NetworkInfo:
        return build(NetworkInfo, self._client.request("GET", f"{self._path}/network"))

    def allow(self, host: str, *, stop: bool = False) -> NetworkInfo:
        """Allows a host (a pattern, with or without :PORT). A token needs the owner's approval: ApprovalRequiredError.

        stop: kill running processes if the sandbox must restart for its first host.
        """
        return self._change("allow", host, stop)

    def deny(self, host: str) -> NetworkInfo:
        """Denies a host, even if a pattern allows it."""
        return self._change("deny", host, None)

    def remove(self, host: str) -> NetworkInfo:
        """Removes a host from the allowed hosts."""
        return self._change("remove", host, None)

    def _change(self, action: str, host: str, stop: bool | None) -> NetworkInfo:
        body = {"action": action, "host": host, "stop": stop}
        return build(NetworkInfo, self._client.request("POST", f"{self._path}/network", json=body))

    def credentials(self) -> list[Json]:
        """Credentials that are added to requests outside the sandbox, without their values."""
        return list((self._client.request("GET", f"{self._path}/credentials"))["credentials"])
