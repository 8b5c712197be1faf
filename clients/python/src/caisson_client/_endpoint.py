"""The address of the server."""
from __future__ import annotations

import ipaddress
import os
import pwd
import urllib.parse
from dataclasses import dataclass

from ._errors import CaissonError


def _is_loopback(host: str) -> bool:
    """Parses the address: 127.example.org starts with 127 but is a name."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address == ipaddress.IPv6Address("::1") or address in ipaddress.IPv4Network("127.0.0.0/8")


@dataclass(frozen=True)
class Endpoint:
    """A unix socket (`socket`) or a TCP address."""

    socket: str = ""
    host: str = "localhost"
    port: int = 0
    tls: bool = False

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        if self.socket:
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_private(self) -> bool:
        """Whether other machines cannot read the traffic."""
        return bool(self.socket) or self.tls or _is_loopback(self.host)

    def __str__(self) -> str:
        return f"unix:{self.socket}" if self.socket else f"{'https' if self.tls else 'http'}://{self.authority}"


def parse_url(url: str) -> Endpoint:
    """`unix:/path/to/socket`, `http://HOST:PORT` or `https://HOST:PORT`."""
    if url.startswith("unix:"):
        path = url[len("unix:"):]
        return Endpoint(socket=path[2:] if path.startswith("//") else path)
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
        raise CaissonError(f"invalid server address {url!r}: expected unix:/PATH, http://HOST:PORT or https://HOST:PORT")
    tls = parts.scheme == "https"
    return Endpoint(host=parts.hostname, port=parts.port or (443 if tls else 80), tls=tls)


def state_home() -> str:
    """The directory of the local server's state: CAISSON_HOME, or caisson's directory in the user's data directory."""
    for variable, below in (("CAISSON_HOME", ""), ("XDG_DATA_HOME", "/caisson"), ("HOME", "/.local/share/caisson")):
        value = os.environ.get(variable, "")
        if value.startswith("/"):
            return value + below
    return pwd.getpwuid(os.geteuid()).pw_dir + "/.local/share/caisson"


def local_endpoint() -> Endpoint:
    """The unix socket on which the user's own server listens by default."""
    return Endpoint(socket=state_home() + "/server/socket")
