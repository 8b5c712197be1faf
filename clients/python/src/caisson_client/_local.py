"""Starts the user's own server if it does not run."""
from __future__ import annotations

import fcntl
import os
import shutil
import socket
import sysconfig
import time

from ._endpoint import Endpoint, state_home
from ._errors import ConnectionFailedError

_PAUSE = 0.02
_GRACE = 1.0


def find_program() -> str:
    """Returns `caisson` in PATH, else the program that the wheel `caisson` installed in this Python environment."""
    beside = os.path.join(sysconfig.get_path("scripts"), "caisson")
    return beside if not shutil.which("caisson") and os.access(beside, os.X_OK) else "caisson"


def _is_served(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


def _spawn(program: str, endpoint: Endpoint, log: str) -> int:
    """Detached: the server and its sandboxes outlive this process."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    arguments = [program, "serve", "--socket", endpoint.socket, "--listen", "none"]
    actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, log, flags, 0o600),
               (os.POSIX_SPAWN_DUP2, 1, 2)]
    try:
        return os.posix_spawnp(program, arguments, os.environ, file_actions=actions, setsid=True)
    except OSError as error:
        raise ConnectionFailedError(f"cannot start {program!r}: {error.strerror}; install caisson, add it to "
                                    "PATH or set CAISSON_PROGRAM") from error


def _wait(pid: int, endpoint: Endpoint, deadline: float) -> bool:
    """Returns whether the server accepts connections before the deadline."""
    running = True
    while not _is_served(endpoint.socket):
        if time.monotonic() > deadline:
            return False
        if running and os.waitpid(pid, os.WNOHANG)[0] == pid:
            # Another client may have started a server that has the socket but does not accept connections yet.
            running = False
            deadline = min(deadline, time.monotonic() + _GRACE)
        time.sleep(_PAUSE)
    return True


def _read_tail(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()[-500:].strip()
    except OSError:
        return ""


def start_server(program: str, endpoint: Endpoint, timeout: float) -> None:
    """Starts `caisson serve` on the socket unless another client does. Returns when it accepts connections."""
    home = os.path.join(state_home(), "server")
    deadline = time.monotonic() + timeout
    os.makedirs(home, mode=0o700, exist_ok=True)
    log = os.path.join(home, "serve.log")
    lock = os.open(os.path.join(home, "serve.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise ConnectionFailedError("another client is starting the server, but it does not respond") from None
                time.sleep(_PAUSE)
        if _is_served(endpoint.socket):
            return
        pid = _spawn(program, endpoint, log)
        if not _wait(pid, endpoint, deadline):
            raise ConnectionFailedError(f"the server does not respond on {endpoint}: {_read_tail(log) or 'no message'}")
    finally:
        os.close(lock)
