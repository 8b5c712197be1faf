#!/usr/bin/env python3
"""The units in packaging/systemd are valid, and a real systemd starts them: user units with a user manager, system units
with a system manager.

Needs root: the managers run in new control groups and namespaces, so that they do not change the machine. The root user
of the system manager is an unused user id outside.
"""
import ctypes
import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

import api

UNITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../packaging/systemd")
SYSTEMD = "/lib/systemd/systemd"
INSIDE = "CAISSON_TEST_CGROUPS"
FIRST_ID = 1879048192  # the system manager's user 0, outside
SERVICE_ID = 990       # the user caisson of the system unit


def read_unit(name):
    with open(os.path.join(UNITS, name)) as file:
        return file.read()


def ordinary_user():
    return next((one for one in pwd.getpwall() if 1000 <= one.pw_uid < 60000), None)


class Scratch(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.mkdtemp(prefix="ca-sd-", dir="/tmp")
        os.chmod(self.place, 0o755)
        self.addCleanup(shutil.rmtree, self.place, ignore_errors=True)

    def install(self, directory, names, **changes):
        """Writes units under their installed names. Returns their paths."""
        os.makedirs(directory, exist_ok=True)
        paths = []
        for source, target in names.items():
            text = read_unit(source).replace("/usr/bin/caisson", os.path.abspath(api.CAISSON))
            for old, new in changes.items():
                text = text.replace(old, new)
            paths.append(os.path.join(directory, target))
            with open(paths[-1], "w") as file:
                file.write(text)
        return paths


class Verify(Scratch):
    def test_units_are_valid(self):
        # CONFORMS("R-HTTP-10")
        user = self.install(os.path.join(self.place, "user"), {"caisson.service": "caisson.service", "caisson.socket": "caisson.socket"})
        system = self.install(os.path.join(self.place, "system"),
                              {"caisson-system.service": "caisson.service", "caisson-system.socket": "caisson.socket"})
        environment = dict(os.environ, XDG_RUNTIME_DIR=self.place)
        for command in (["--user", *user], system):
            done = subprocess.run(["systemd-analyze", "verify", *command], env=environment, capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))


class Manager(Scratch):
    """A systemd manager with the units, on a free port."""
    over_socket = False  # the client of the test, else over TCP

    def setUp(self):
        super().setUp()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    def client(self, socket_path):
        """Returns a client with a token, and the server, from which other clients can be made."""
        token = self.caisson("token", "create", "ci")
        self.assertEqual(token.returncode, 0, token.stderr)
        server = type("S", (), {"socket": socket_path, "port": self.port})()
        return api.Client(server, token.stdout.strip(), unix=self.over_socket), server

    def wait_until_running(self):
        # The state is "degraded" if a unit of the distribution fails; that does not matter here.
        running = api.wait_until(lambda: self.control("is-system-running").stdout.strip() in ("running", "degraded"), 60)
        self.assertTrue(running, self.messages())

    def main_pid(self):
        return int(self.control("show", "-p", "MainPID", "--value", "caisson.service").stdout)

    def is_active(self):
        return self.control("is-active", "caisson.service").stdout.strip() == "active"

    def start_socket(self):
        started = self.control("start", "caisson.socket")
        self.assertEqual(started.returncode, 0, started.stderr + self.messages())
        self.assertFalse(self.is_active())

    def check_sandboxes_outlive_the_service(self, client):
        box = client.create(name="kept")
        self.assertTrue(self.is_active())
        self.assertEqual(client.run(box, "echo hi").json["stdout"], "hi\n")
        command = client.run(box, "sleep 1000", mode="background").json["id"]

        def still_runs():
            return client.call("GET", f"/v1/sandboxes/{box}/commands/{command}").json["running"]

        first = self.main_pid()
        self.kill(first)  # Restart=on-failure; connections wait in the socket meanwhile
        self.assertTrue(still_runs())
        self.assertNotEqual(self.main_pid(), first)
        self.assertEqual(self.control("restart", "caisson.service").returncode, 0)
        self.assertTrue(still_runs())
        self.assertEqual(self.control("stop", "caisson.service", "caisson.socket").returncode, 0)
        self.assertFalse(self.is_active())
        listed = self.caisson("session", "list", "--json").stdout
        self.assertTrue(json.loads(listed)["sessions"][0]["live"], listed)
        self.assertEqual(self.control("start", "caisson.socket").returncode, 0)
        self.assertTrue(still_runs())
        self.assertEqual(client.call("DELETE", f"/v1/sandboxes/{box}").status, 204)
        cleaned = self.caisson("clean", "--all")
        self.assertEqual(cleaned.returncode, 0, cleaned.stderr)


class UserManager(Manager):
    over_socket = True

    def setUp(self):
        super().setUp()
        self.user = ordinary_user()
        self.home, self.run = os.path.join(self.place, "h"), os.path.join(self.place, "r")
        self.install(os.path.join(self.home, ".config/systemd/user"),
                     {"caisson.service": "caisson.service", "caisson.socket": "caisson.socket"})
        os.mkdir(self.run, 0o700)
        subprocess.run(["chown", "-R", f"{self.user.pw_uid}:{self.user.pw_gid}", self.home, self.run], check=True)
        self.log = open(os.path.join(self.place, "log"), "w+")
        self.addCleanup(self.log.close)
        self.manager = subprocess.Popen([*self.as_user(), SYSTEMD, "--user"], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.addCleanup(self.end_manager)
        self.wait_until_running()

    def as_user(self):
        environment = {"PATH": "/usr/bin:/bin", "HOME": self.home, "XDG_RUNTIME_DIR": self.run, "SYSTEMD_LOG_TARGET": "console"}
        identity = ["setpriv", "--reuid", str(self.user.pw_uid), "--regid", str(self.user.pw_gid), "--init-groups"]
        return [*identity, "env", "-i", *(f"{name}={value}" for name, value in environment.items())]

    def control(self, *words):
        return subprocess.run([*self.as_user(), "systemctl", "--user", *words], capture_output=True, text=True, timeout=60)

    def messages(self):
        self.log.seek(0)
        return self.log.read()

    def end_manager(self):
        self.manager.terminate()
        try:
            self.manager.wait(30)
        except subprocess.TimeoutExpired:
            self.manager.kill()
            self.manager.wait()

    def caisson(self, *words):
        return subprocess.run([*self.as_user(), api.CAISSON, *words], capture_output=True, text=True, timeout=60)

    def kill(self, pid):
        os.kill(pid, 9)

    def test_socket_starts_the_service_and_sandboxes_outlive_it(self):
        # CONFORMS("R-HTTP-9", "R-HTTP-10")
        self.start_socket()
        path = os.path.join(self.home, ".local/share/caisson/server/socket")
        self.assertTrue(os.path.exists(path))
        client, server = self.client(path)
        self.check_sandboxes_outlive_the_service(client)
        self.assertNotIn("7080", self.control("show", "-p", "Listen", "caisson.socket").stdout)
        # Root is not the owner on another user's socket.
        self.assertEqual(api.Client(server).call("GET", "/v1/whoami").status, 401)


# Runs as pid 1 and executes the manager. Its namespace contains nothing of the machine's /etc, /run and /var/lib.
BOOT = """set -e
console=$1 place=$2; shift 2
for group; do mount --bind "$group" "$(dirname "$(dirname "$group")")"; done
for directory in /run /var/lib /etc; do mount -t tmpfs -o mode=755 caisson-test $directory; done
cp -r "$place"/etc/. /etc
mkdir -m 700 /var/lib/caisson
chown {id}:{id} /var/lib/caisson
mount --bind "$console" /dev/console
mount -t proc caisson-test /proc
exec env -i PATH=/usr/bin:/bin container=caisson-test SYSTEMD_LOG_TARGET=console SYSTEMD_UNIT_PATH=/etc/systemd/system \
  {systemd} --system --unit=multi-user.target --default-standard-output=null
""".format(id=SERVICE_ID, systemd=SYSTEMD)


class SystemManager(Manager):
    """Runs as pid 1 in a user and pid namespace, with the targets of the distribution but none of its services."""

    def setUp(self):
        super().setUp()
        etc = os.path.join(self.place, "etc")
        units = os.path.join(etc, "systemd/system")
        self.install(units, {"caisson-system.service": "caisson.service", "caisson-system.socket": "caisson.socket"},
                     **{"127.0.0.1:7080": f"127.0.0.1:{self.port}"})
        for name in ("basic", "multi-user", "network", "shutdown", "sockets", "sysinit"):
            shutil.copy(f"/lib/systemd/system/{name}.target", units)
        os.mkdir(os.path.join(etc, "caisson"))
        for name, text in {"passwd": f"root:x:0:0::/root:/bin/sh\ncaisson:x:{SERVICE_ID}:{SERVICE_ID}::/var/lib/caisson:/bin/false\n",
                           "group": f"root:x:0:\ncaisson:x:{SERVICE_ID}:\n", "machine-id": "1" * 32 + "\n",
                           "caisson/server.toml": ""}.items():
            with open(os.path.join(etc, name), "w") as file:
                file.write(text)
        groups = [os.path.join(group, "system") for group in os.environ[INSIDE].split()]
        master, slave = os.openpty()
        self.addCleanup(os.close, master)
        os.set_blocking(master, False)
        self.console, self.log = master, ""
        console = os.ttyname(slave)
        for group in groups:
            os.mkdir(group)
        for path in (console, *groups, *(f"{group}/cgroup.procs" for group in groups)):
            os.chown(path, FIRST_ID, FIRST_ID)
        os.chmod(console, 0o600)
        self.outer = self.start_manager(groups, ["sh", "-c", BOOT, "sh", console, self.place, *groups])
        self.addCleanup(self.end_manager)
        os.close(slave)
        children = f"/proc/{self.outer}/task/{self.outer}/children"
        self.manager = int(api.wait_until(lambda: api.read_text(children), 30))
        self.wait_until_running()

    def start_manager(self, groups, command):
        """Returns the pid of the parent of the manager."""
        ready, go = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                for group in groups:
                    with open(f"{group}/cgroup.procs", "w") as file:
                        file.write("0")
                new = 0x10000000 | 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000  # user, mount, cgroup, uts, ipc
                if ctypes.CDLL(None).unshare(new) != 0:
                    os._exit(1)
                os.write(ready[1], b"x")
                os.read(go[0], 1)
                os.setgroups([])
                os.setresgid(0, 0, 0)
                os.setresuid(0, 0, 0)
                os.execvp("unshare", ["unshare", "--pid", "--fork", "--kill-child", *command])
            finally:
                os._exit(1)
        os.read(ready[0], 1)
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{pid}/{name}", "w") as file:
                file.write(f"0 {FIRST_ID} 65536")
        os.write(go[1], b"x")
        for end in (*ready, *go):
            os.close(end)
        return pid

    def end_manager(self):
        for pid in (getattr(self, "manager", None), self.outer):
            if pid:
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    pass
        os.waitpid(self.outer, 0)

    def messages(self):
        try:
            while piece := os.read(self.console, 65536):
                self.log += piece.decode(errors="replace")
        except OSError:
            pass
        return self.log

    def inside(self, user, *command):
        identity = ["-S", str(user), "-G", str(user)]
        return subprocess.run(["nsenter", "-t", str(self.manager), "-U", "-m", "-p", "-C", *identity, *command],
                              capture_output=True, text=True, timeout=60)

    def control(self, *words):
        return self.inside(0, "systemctl", *words)

    def caisson(self, *words):
        return self.inside(SERVICE_ID, "env", "-i", "PATH=/usr/bin:/bin", "CAISSON_HOME=/var/lib/caisson/state", api.CAISSON, *words)

    def kill(self, pid):
        self.assertEqual(self.inside(0, "kill", "-9", str(pid)).returncode, 0)

    def test_socket_starts_the_service_as_its_user(self):
        # CONFORMS("R-HTTP-9", "R-HTTP-10")
        self.start_socket()
        path = f"/proc/{self.manager}/root/run/caisson/socket"
        self.assertEqual(os.stat(path).st_uid, FIRST_ID + SERVICE_ID)
        client, server = self.client(path)
        self.check_sandboxes_outlive_the_service(client)
        self.assertEqual(os.stat(f"/proc/{self.manager}/root/var/lib/caisson/state").st_uid, FIRST_ID + SERVICE_ID)
        self.assertIn("Umask:\t0077", self.inside(0, "cat", f"/proc/{self.main_pid()}/status").stdout)
        # Root is not the owner on the service's socket.
        self.assertEqual(api.Client(server).call("GET", "/v1/whoami").status, 401)


def cgroups():
    """Returns the hierarchies in which systemd tracks processes: v2, or its v1 hierarchy and v2."""
    root = "/sys/fs/cgroup"
    if os.path.exists(f"{root}/cgroup.procs"):
        return [root]
    return [path for path in (f"{root}/systemd", f"{root}/unified") if os.path.exists(f"{path}/cgroup.procs")]


def start_inside():
    """Starts this test again in new namespaces and control groups. Returns its exit status."""
    groups = [os.path.join(path, f"caisson-test-{os.getpid()}") for path in cgroups()]
    user = ordinary_user()
    for group in groups:
        os.mkdir(group)
        for path in (group, f"{group}/cgroup.procs"):
            os.chown(path, user.pw_uid, user.pw_gid)
    command = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv]
    try:
        return subprocess.run(command, env=dict(os.environ, **{INSIDE: " ".join(groups)})).returncode
    finally:
        for group in groups:
            for directory, _, _ in os.walk(group, topdown=False):
                api.wait_until(lambda: remove_group(directory), 10)


def remove_group(path):
    try:
        os.rmdir(path)
    except OSError:
        return False
    return True


def enter():
    for group in os.environ[INSIDE].split():
        with open(f"{group}/cgroup.procs", "w") as file:
            file.write("0")
    # A user manager does not run on machines that systemd did not boot.
    os.makedirs("/run/systemd", exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "caisson-test", "/run/systemd"], check=True)
    os.mkdir("/run/systemd/system")


if __name__ == "__main__":
    missing = [name for name in ("systemctl", "systemd-analyze", "setpriv", "unshare", "nsenter") if shutil.which(name) is None]
    if missing or not os.path.exists(SYSTEMD) or os.getuid() != 0 or ordinary_user() is None:
        print("needs root, an ordinary user and systemd", *missing)
        raise SystemExit(77)
    if not os.environ.get(INSIDE):
        raise SystemExit(start_inside())
    enter()
    api.main()
