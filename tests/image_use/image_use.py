#!/usr/bin/env python3
"""image_use.py CAISSON CACHE: package managers in sessions whose root is Debian minbase, as the user who runs it.

CACHE is a directory that keeps the root's archive; mmdebstrap makes it once, from this machine's own apt sources. The
last line says how many checks passed. A check whose tools or registry are missing is skipped.
"""
import os
import pathlib
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
    """The files that list this machine's apt sources."""
    files = [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]
    return [path for path in files if path.is_file() and re.search(r"^(deb |URIs:)", path.read_text(), re.M)]


def apt_hosts():
    urls = re.findall(r"https?://[^\s]+", "\n".join(line for path in apt_files() for line in
                                                     path.read_text().splitlines() if not line.startswith("#")))
    return sorted({urllib.parse.urlsplit(url).netloc for url in urls})


def setting_of(*command):
    """What a package client of this machine is configured to use; empty if it is not installed or not configured."""
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() if done.returncode == 0 and done.stdout.startswith("http") else ""


def npm_registry():
    return setting_of("npm", "config", "get", "registry")


def pip_index():
    return setting_of("pip", "config", "get", "global.index-url")


def archive(cache):
    """A tar of Debian minbase, made once."""
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
    """A session that is root inside, with the Debian root."""

    def __init__(self, caisson, home, root):
        self.caisson = caisson
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
        """Lets programs inside trust what this machine trusts: its registries may be mirrors."""
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
        done = subprocess.run([self.caisson, *arguments], env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SECONDS)
        if check:
            expect(done.returncode == 0, "caisson " + " ".join(arguments), done.stdout[-3000:] + done.stderr[-3000:])
        return done

    def run(self, script, check=True):
        return self.call("session", "exec", self.id, "--", "sh", "-ec", script, check=check).stdout

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
    """Whether a registry answers, directly."""
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
        raise Skipped("pip is not configured for an index here, or the index is not reachable")
    session.run(APT + f"python3-pip >/dev/null; pip install --index-url {index} --break-system-packages six >/dev/null 2>&1")
    expect(session.run("python3 -c 'import six; print(six.__name__)'") == "six\n", "six can be imported")


def check_npm(session):
    registry = npm_registry()
    if not registry or not reachable(registry.rstrip("/") + "/is-number"):
        raise Skipped("npm is not installed here, or its registry is not reachable")
    session.run(APT + "npm ca-certificates >/dev/null; "
                f"npm install -g --registry {registry} --no-progress --loglevel=error semver >/dev/null")
    expect(session.run("semver 1.2.3").strip() == "1.2.3", "semver runs")


CHECKS = [check_shell, check_apt, check_accounts_and_set_ids, check_removal, check_pip, check_npm]


def main():
    caisson, cache = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).absolute()
    wanted = sys.argv[3:]
    passed = failed = skipped = 0
    with tempfile.TemporaryDirectory(prefix="caisson-image-use-") as name:
        home = pathlib.Path(name)
        try:
            root = home / "root"
            root.mkdir()
            subprocess.run(["tar", "-xf", str(archive(cache)), "-C", str(root), "--no-same-owner", "--exclude=./dev/*"],
                           check=True)
            session = Session(caisson, home, root)
        except Skipped as reason:
            print(f"skipped: {reason}")
            return 0
        for check in CHECKS:
            title = check.__name__.removeprefix("check_").replace("_", " ")
            if wanted and check.__name__.removeprefix("check_") not in wanted:
                continue
            try:
                check(session)
                passed += 1
                print(f"passed   {title}", flush=True)
            except Skipped as reason:
                skipped += 1
                print(f"skipped  {title}: {reason}", flush=True)
            except (Failed, subprocess.TimeoutExpired) as reason:
                failed += 1
                print(f"FAILED   {title}: {reason}", flush=True)
        session.destroy()
        expect(not (root / "usr/bin/new").exists(), "the root itself is unchanged")
    print(f"image use as {os.environ.get('USER') or os.geteuid()}: {passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
