#!/usr/bin/env python3
"""image_use.py CAISSON CACHE: runs package managers in sessions whose root is Debian minbase, as the current user.

CACHE is a directory for the archive of the root, which mmdebstrap creates once from this machine's apt sources. For an
ordinary user with subordinate ids the checks run twice: with these ids, and with a single id. The last line has the
number of passed checks. A check whose tools or registry are missing is skipped.
"""
import json
import os
import pathlib
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

BLOCKED = re.compile(r"^(10\.|127\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.|192\.0\.[02]\.|192\.168\.|198\.(1[89]|51)\.|"
                     r"203\.0\.113\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.)")
SECONDS = 900


class Skipped(Exception):
    pass


class Failed(Exception):
    pass


def expect(good, what, detail=""):
    if not good:
        raise Failed(f"{what}\n{detail}".rstrip())


def apt_files():
    """Returns the files that list this machine's apt sources."""
    files = [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]
    return [path for path in files if path.is_file() and re.search(r"^(deb |URIs:)", path.read_text(), re.M)]


def apt_hosts():
    urls = re.findall(r"https?://[^\s]+", "\n".join(line for path in apt_files() for line in
                                                     path.read_text().splitlines() if not line.startswith("#")))
    return sorted({urllib.parse.urlsplit(url).netloc for url in urls})


def setting_of(*command):
    """Returns the configured registry of a package manager; empty if it is not installed or not configured."""
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() if done.returncode == 0 and done.stdout.startswith("http") else ""


def npm_registry():
    return setting_of("npm", "config", "get", "registry")


def pip_index():
    return setting_of("pip", "config", "get", "global.index-url")


def archive(cache):
    """Returns an archive of Debian minbase, created once."""
    path = cache / "debian-minbase.tar"
    if path.exists():
        return path
    if shutil.which("mmdebstrap") is None:
        raise Skipped("not installed: mmdebstrap")
    if not apt_files():
        raise Skipped("this machine has no apt sources")
    cache.mkdir(parents=True, exist_ok=True)
    part = cache / f"debian-minbase.{os.getpid()}.tar"
    mode = "root" if os.geteuid() == 0 else "unshare"
    done = subprocess.run(["mmdebstrap", f"--mode={mode}", "--variant=minbase", "--format=tar", "", str(part),
                           *map(str, apt_files())], capture_output=True, text=True, timeout=SECONDS)
    if done.returncode != 0:
        raise Skipped("mmdebstrap failed: " + done.stderr.strip().splitlines()[-1])
    part.chmod(0o644)
    part.rename(path)
    return path


class Session:
    """A session with the Debian root, as root inside."""

    def __init__(self, caisson, home, root, single_id=False):
        # newuidmap is a setuid program: with no_new_privs there are no subordinate ids.
        self.caisson = ["setpriv", "--no-new-privs", caisson] if single_id else [caisson]
        self.state = home / "state"
        self.environment = dict(os.environ, CAISSON_HOME=str(home / "state"), XDG_CONFIG_HOME=str(home / "config"),
                                HOME=str(home))
        hosts = apt_hosts() + [urllib.parse.urlsplit(url).netloc for url in (npm_registry(), pip_index()) if url]
        private = sorted({name for name in (host.split(":")[0] for host in hosts) if resolves_to_blocked(name)})
        config = home / "config/caisson/config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(f"[network]\nprivate_hosts = {toml(private)}\n")
        config.chmod(0o600)
        policy = home / "policy.toml"
        ports = sorted({int(host.split(":")[1]) for host in hosts if ":" in host} | {80, 443})
        policy.write_text(f'extends = "dev"\nisolation.user = "root"\nfilesystem.root = "{root}"\n'
                          f'filesystem.workspace.mode = "none"\nnetwork.mode = "proxy"\n'
                          f"network.allowed_hosts = {toml(hosts)}\nnetwork.private_hosts = {toml(private)}\n"
                          f"network.allowed_ports = {toml(ports)}\n")
        self.trust(home, policy)
        self.id = self.call("session", "create", "--policy", str(policy)).stdout.strip()

    @staticmethod
    def trust(home, policy):
        """Installs this machine's certificates inside, because its registries may be mirrors."""
        bundle = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
        if not bundle.exists():
            return
        shown = home / "trusted.pem"
        shutil.copyfile(bundle, shown)
        names = ("NODE_EXTRA_CA_CERTS", "npm_config_cafile", "PIP_CERT", "SSL_CERT_FILE")
        values = ", ".join(f'{name} = "{shown}"' for name in names)
        with policy.open("a") as file:
            file.write(f'filesystem.read_only = ["{shown}"]\nenvironment.set = {{ {values} }}\n')

    def call(self, *arguments, check=True):
        done = subprocess.run([*self.caisson, *arguments], env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SECONDS)
        if check:
            expect(done.returncode == 0, "caisson " + " ".join(arguments), done.stdout[-3000:] + done.stderr[-3000:])
        return done

    def run(self, script, check=True):
        return self.call("session", "exec", self.id, "--", "sh", "-ec", script, check=check).stdout

    def layer(self, name):
        """Returns the value of a layer of a command's sandbox in the output of `--json`."""
        result = self.call("session", "exec", "--json", self.id, "--", "true").stdout
        return json.loads(result)["layers"][name]

    def destroy(self):
        self.call("session", "destroy", self.id)


def toml(values):
    return "[" + ", ".join(str(value) if isinstance(value, int) else f'"{value}"' for value in values) + "]"


def resolves_to_blocked(name):
    try:
        return any(BLOCKED.match(info[4][0]) for info in socket.getaddrinfo(name, None, socket.AF_INET))
    except OSError:
        return False


def reachable(url):
    """Returns whether a registry responds to a direct request."""
    try:
        with urllib.request.urlopen(url, timeout=10):
            return True
    except OSError:
        return False


APT = "DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install "


def check_shell(session):
    out = session.run("id -u; . /etc/os-release; echo $ID; touch /usr/bin/new; ls /usr/bin/new")
    expect(out == "0\ndebian\n/usr/bin/new\n", "a shell as root inside", out)


def check_apt(session):
    session.run("apt-get -qq update; " + APT + "less >/dev/null")
    expect("less 5" in session.run("less --version"), "less runs")
    expect("ii  less" in session.run("dpkg -l less"), "dpkg lists it")


def check_accounts_and_set_ids(session):
    """Packages that create users and groups, and have setuid or setgid programs."""
    session.run(APT + "cron sudo openssh-client >/dev/null")
    with_bits = session.run("find $(dpkg -L cron sudo openssh-client) -maxdepth 0 -perm /6000 -type f")
    expect(with_bits == "", "none of their files has a setuid or setgid bit", with_bits)
    expect(session.run("test -x /usr/bin/sudo; getent group crontab | cut -d: -f1") == "crontab\n", "group crontab")
    expect(session.run("dpkg --audit") == "", "every package is configured")


def check_removal(session):
    session.run("apt-get -qq -y purge less >/dev/null; ! command -v less")


def check_pip(session):
    index = pip_index()
    if not index or not reachable(index.rstrip("/") + "/six/"):
        raise Skipped("pip has no configured index, or the index is not reachable")
    session.run(APT + f"python3-pip >/dev/null; pip install --index-url {index} --break-system-packages six >/dev/null 2>&1")
    expect(session.run("python3 -c 'import six; print(six.__name__)'") == "six\n", "six can be imported")


def check_npm(session):
    registry = npm_registry()
    if not registry or not reachable(registry.rstrip("/") + "/is-number"):
        raise Skipped("npm is not installed, or its registry is not reachable")
    session.run(APT + "npm ca-certificates >/dev/null; "
                f"npm install -g --registry {registry} --no-progress --loglevel=error semver >/dev/null")
    expect(session.run("semver 1.2.3").strip() == "1.2.3", "semver runs")


def check_single_id(session):
    """Calls that change owners and ids report success but have no effect."""
    expect(session.layer("user").startswith("root inside, a single id"), "the layer user", session.layer("user"))
    expect(session.layer("capabilities") == "none", "no capabilities")
    out = session.run("touch /single; chown 33:33 /single; stat -c %u:%g /single")
    expect(out == "0:0\n", "chown changes nothing", out)
    expect("root" in session.run("apt-config dump APT::Sandbox::User"), "apt downloads as root")


def check_real_owners(session):
    """Owners, ids and groups change; setuid bits have no effect."""
    expect("subordinate ids" in session.layer("user"), "the layer user", session.layer("user"))
    expect("_apt" in session.run("apt-config dump APT::Sandbox::User"), "apt downloads as _apt")
    out = session.run("stat -c %U:%G /var/spool/cron/crontabs /usr/bin/crontab")
    expect(out == "root:crontab\nroot:crontab\n", "owners of packaged files", out)
    out = session.run("touch /real; chown www-data:mail /real; chmod 6755 /real; stat -c '%U:%G %a' /real")
    expect(out == "www-data:mail 755\n", "chown and chmod of another user's file", out)
    out = session.run("su -s /bin/sh www-data -c 'id -un; id -Gn; touch /tmp/mine; ! touch /etc/mine 2>/dev/null; "
                      "! chmod 4777 /etc/passwd 2>/dev/null; ! kill -0 1 2>/dev/null; stat -c %U /tmp/mine'")
    expect(out == "www-data\nwww-data\nwww-data\n", "another user inside", out)
    out = session.run("cp /usr/bin/id /tmp/id; chmod 4755 /tmp/id; su -s /bin/sh www-data -c '/tmp/id -u'")
    expect(out == "33\n", "a setuid bit gives nothing", out)
    out = session.run("grep NoNewPrivs /proc/self/status; mount -t tmpfs none /mnt 2>&1 || true")
    expect("NoNewPrivs:\t1" in out and ("denied" in out or "permitted" in out), "no other rights", out)


def check_closed_directories(session):
    """A checkpoint, a diff and a fork of a session whose workspace and root have private directories of other ids."""
    session.run("cd /workspace; mkdir -p closed/deep; echo secret >closed/deep/file; chown -R www-data closed; chmod -R go= closed; "
                "mkdir /closed; cp /etc/passwd /closed; chown -R 77:78 /closed; chmod 700 /closed")
    expect("closed/deep/file" in session.call("session", "diff", session.id).stdout, "diff lists them")
    session.call("session", "checkpoint", session.id, "closed")
    fork = session.call("session", "fork", session.id).stdout.strip()
    out = session.call("session", "exec", fork, "--", "cat", "/workspace/closed/deep/file").stdout
    expect(out == "secret\n", "the fork has them", out)
    session.call("session", "destroy", fork)


ALL = [check_shell, check_apt, check_accounts_and_set_ids]
REST = [check_removal, check_pip, check_npm]
WITH_ONE_ID = [*ALL, check_single_id, *REST]
WITH_MORE_IDS = [*ALL, check_real_owners, check_closed_directories, *REST]
BRIEFLY_WITH_ONE_ID = [*ALL, check_single_id, check_removal]


def has_more_ids():
    user = pwd.getpwuid(os.geteuid()).pw_name
    ranges = [pathlib.Path(name) for name in ("/etc/subuid", "/etc/subgid")]
    return (os.geteuid() != 0 and shutil.which("newuidmap") is not None and
            all(path.exists() and re.search(f"^{user}:", path.read_text(), re.M) for path in ranges))


def foreign(directory):
    """Returns files below a directory that belong to another user or cannot be accessed."""
    problems = []
    for top, directories, files in os.walk(directory, onerror=lambda error: problems.append(str(error))):
        problems += [name for name in (os.path.join(top, one) for one in directories + files)
                     if os.lstat(name).st_uid != os.geteuid()]
    return problems


def stores(state):
    """Returns the files of sessions and runs in CAISSON_HOME."""
    kept = ("names", ".lock", ".cleaned")
    return [path for name in ("stores", "runs", "sessions") for path in (state / name).glob("*") if path.name not in kept]


def check_end(session):
    """After destroy nothing is left, not even files of other ids."""
    session.destroy()
    session.call("clean")  # removes layers of the destroyed fork
    left = stores(session.state) + foreign(session.state)
    expect(not left, "nothing is left", "\n".join(map(str, left)))


def check_kill(session, root):
    """kill -9 of a run leaves files of other ids, and the next clean-up removes them."""
    command = [*session.caisson, "run", "--workspace", ":none", "--image", str(root), "--user", "root", "--", "sh", "-c",
               "mkdir -p /closed/a; touch /closed/a/b; chown -R 77 /closed; chmod 700 /closed /closed/a; "
               "echo ready; exec sleep 600"]
    with subprocess.Popen(command, env=session.environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True) as running:
        expect(running.stdout.readline() == "ready\n", "the run is ready")
        running.kill()
    expect(list((session.state / "runs").glob("*")), "the killed run left its store")
    session.call("clean")
    left = list((session.state / "runs").glob("*"))
    expect(not left, "nothing is left", "\n".join(map(str, left)))


def check_quota(session, root):
    """Files of another id in a private directory count towards the limit, though the supervisor cannot enter it."""
    policy = session.state.parent / "quota.toml"
    policy.write_text(f'extends = "dev"\nisolation.user = "root"\nfilesystem.root = "{root}"\n'
                      'filesystem.workspace.mode = "none"\n'
                      'filesystem.tmpfs = [{ path = "/tmp", size = "16M", store = "disk" }]\n')
    done = session.call("run", "--json", "--policy", str(policy), "--", "sh", "-c",
                        "mkdir -p /tmp/x/y; chown -R 77 /tmp/x; chmod 700 /tmp/x /tmp/x/y; head -c 64M /dev/zero >/tmp/x/y/z; "
                        "exec sleep 60", check=False)
    result = json.loads(done.stdout)
    expect(result["outcome"] == "limit" and result["limit"] == "disk", "the run ends at its disk limit", done.stdout)


class Tally:
    def __init__(self, wanted):
        self.wanted, self.passed, self.failed, self.skipped = wanted, 0, 0, 0

    def run(self, check, *arguments, where=""):
        name = check.__name__.removeprefix("check_")
        if self.wanted and name not in self.wanted:
            return
        title = name.replace("_", " ") + where
        try:
            check(*arguments)
            self.passed += 1
            print(f"passed   {title}", flush=True)
        except Skipped as reason:
            self.skipped += 1
            print(f"skipped  {title}: {reason}", flush=True)
        except (Failed, subprocess.TimeoutExpired) as reason:
            self.failed += 1
            print(f"FAILED   {title}: {reason}", flush=True)


def main():
    caisson, cache = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).absolute()
    tally = Tally(sys.argv[3:])
    with tempfile.TemporaryDirectory(prefix="caisson-image-use-") as name:
        home = pathlib.Path(name)
        try:
            root = home / "root"
            root.mkdir()
            subprocess.run(["tar", "-xf", str(archive(cache)), "-C", str(root), "--no-same-owner", "--exclude=./dev/*"],
                           check=True)
        except Skipped as reason:
            print(f"skipped: {reason}")
            return 0
        more = has_more_ids()
        modes = [(True, " with subordinate ids", WITH_MORE_IDS), (False, " with a single id", BRIEFLY_WITH_ONE_ID)]
        for subordinate, where, checks in modes if more else [(False, "", WITH_ONE_ID)]:
            session = Session(caisson, home, root, single_id=more and not subordinate)
            for check in checks:
                tally.run(check, session, where=where)
            tally.run(check_end, session, where=where)
            tally.run(check_kill, session, root, where=where)
            tally.run(check_quota, session, root, where=where)
        expect(not (root / "usr/bin/new").exists(), "the root itself is unchanged")
    print(f"image use as {os.environ.get('USER') or os.geteuid()}: {tally.passed} passed, {tally.failed} failed, "
          f"{tally.skipped} skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
