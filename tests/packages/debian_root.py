"""Fresh Debian roots for tests of packages: no compiler, no network, an ordinary user.

Each root is on a file system in a file, in mount, pid and network namespaces, and disappears with them. Needs root. The
archives of mmdebstrap are cached in CAISSON_PACKAGES_CACHE (default: ~/.cache/caisson-packages).
"""
from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
OUTPUT = pathlib.Path(os.environ.get("CAISSON_DIST_OUTPUT", SOURCE / "dist"))
CACHE = pathlib.Path(os.environ.get("CAISSON_PACKAGES_CACHE")
                     or pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "caisson-packages")
# Set for packages of another architecture (tests/vm/toolchain.sh).
CROSS = os.environ.get("CAISSON_CROSS")
ARCHITECTURE = CROSS or {"aarch64": "arm64", "x86_64": "amd64"}[os.uname().machine]
SUITES = ("bookworm", "trixie")
PACKAGES = "make,nodejs,npm,pipx,procps,python3-venv"
USER = "user"
HOME = f"/home/{USER}"
TIMEOUT = 300


def sources(suite: str) -> str:
    script = '. "$0" && package_sources "$@"'
    return subprocess.run(["sh", "-c", script, SOURCE / "packaging" / "dist" / "debian_sources.sh", suite, f"{suite}-updates",
                           f"{suite}-security"], capture_output=True, text=True, check=True).stdout


def archive(suite: str, packages: str = PACKAGES, kind: str = "root") -> pathlib.Path:
    """Creates a minimal Debian with packages, by default the package managers of Node and Python. A kind has one list of
    packages."""
    path = CACHE / f"{kind}-{suite}-{f'{CROSS}-' if CROSS else ''}1.tar"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        done = subprocess.run(["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--format=tar", f"--include={packages}",
                               f"--architectures={ARCHITECTURE}", *(["--skip=check/qemu,chroot/mount/proc,chroot/mount/sys"] if CROSS else []),
                               "--dpkgopt=force-unsafe-io", f'--customize-hook=chroot "$1" useradd -m -u 1000 -s /bin/bash {USER}',
                               suite, temporary, "-"], input=sources(suite), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            temporary.unlink(missing_ok=True)
            raise RuntimeError(f"mmdebstrap failed:\n{done.stderr}")
        temporary.rename(path)
    return path


class Root:
    def __init__(self, suite: str, packages: str = PACKAGES, kind: str = "root") -> None:
        tar = archive(suite, packages, kind)
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="caisson-root-"))
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private", "--pid", "--fork",
             "--kill-child=KILL", "--net", "--ipc", "--uts", "sh", HERE / "enter_root.sh", self.directory, tar],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.process.stdout.readline() != b"ready\n":
            self.close()
            raise RuntimeError("the root did not start")
        pid = self.process.pid
        self.first = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]

    def close(self) -> None:
        self.process.kill()  # --kill-child also kills the first process, and thus all others
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        (self.directory / "root").rmdir()  # only a mount point
        self.directory.rmdir()

    def run(self, *arguments: object, user: str = USER, cwd: str = HOME, environment: dict[str, str] | None = None,
            check: bool = True, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
        """Runs a program as the ordinary user; the output contains standard output and standard error."""
        identity = ["--reuid", user, "--regid", user, "--init-groups", "--inh-caps=-all"] if user != "root" else ["--clear-groups"]
        variables = {"HOME": HOME if user == USER else "/root", "LC_ALL": "C.UTF-8", "NO_COLOR": "1",
                     "PATH": f"{HOME}/.local/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", **(environment or {})}
        done = subprocess.run(
            ["nsenter", "--target", self.first, "--mount", "--pid", "--net", "--ipc", "--uts", "setpriv", *identity, "--",
             "env", "-i", *(f"{name}={value}" for name, value in variables.items()),
             "sh", "-c", 'cd "$0" && exec "$@"', cwd, *map(str, arguments)],
            input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT, check=False)
        text = done.stdout.decode(errors="replace")
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, arguments))}: status {done.returncode}\n{text}")
        return subprocess.CompletedProcess(arguments, done.returncode, text)

    def output(self, *arguments: object, **options: object) -> str:
        return self.run(*arguments, **options).stdout.strip()

    def put(self, path: str, data: bytes | str, user: str = USER) -> None:
        self.run("sh", "-c", 'mkdir -p "$(dirname "$0")" && cat >"$0"', path, user=user,
                 stdin=data.encode() if isinstance(data, str) else data)

    def files(self) -> set[str]:
        """Returns every file of the root with the attributes that show a change."""
        listing = self.output("find", "/", "-xdev", "(", "-type", "d", "-printf", "%p %m\\n", ")", "-o", "-printf",
                              "%p %m %s %T@ %l\\n", user="root")
        return set(listing.splitlines())


class RootTest(unittest.TestCase):
    """One root for all tests of a class, which run in the order of their names."""

    suite = SUITES[0]
    packages = PACKAGES
    kind = "root"
    root: Root

    @classmethod
    def setUpClass(cls) -> None:
        cls.root = Root(cls.suite, cls.packages, cls.kind)
        cls.addClassCleanup(cls.root.close)

    def check_readme(self, program: str) -> None:
        """Checks that the examples of the README work with this program, as the ordinary user."""
        for path in ("README.md", "tests/docs/run_examples.py"):
            self.root.put(f"{HOME}/source/{path}", (SOURCE / path).read_bytes())
        done = self.root.output("python3", f"{HOME}/source/tests/docs/run_examples.py", f"{HOME}/source/README.md",
                                environment={"CAISSON_BIN": program, "CAISSON_SOURCE_DIR": f"{HOME}/source"})
        self.root.run("rm", "-r", f"{HOME}/source")
        self.assertIn("0 failed", done)

    def check_manifest(self, program: str, prefix: str) -> None:
        """Checks that `caisson self verify` finds every file of the manifest below the prefix, and detects a change."""
        self.root.run(program, "self", "verify")
        changed = f"{prefix}/libexec/caisson/caisson-broker"
        self.root.run("sh", "-c", 'cp "$0" /tmp/copy && printf x >>"$0"', changed)
        done = self.root.run(program, "self", "verify", check=False)
        self.root.run("sh", "-c", 'cat /tmp/copy >"$0" && rm /tmp/copy', changed)
        self.assertEqual(done.returncode, 1)
        self.assertIn("caisson-broker", done.stdout)

    def check_no_compiler(self) -> None:
        for name in ("cc", "gcc", "g++", "clang", "tsc", "cmake"):
            self.assertNotEqual(self.root.run("which", name, check=False).returncode, 0, name)


def package(pattern: str) -> pathlib.Path:
    """Returns the built package with this name pattern."""
    found = sorted(OUTPUT.glob(pattern))
    if len(found) != 1:
        raise RuntimeError(f"{len(found)} files are named {pattern} in {OUTPUT}: run `make dist` in an empty dist/")
    return found[0]


def readme_example(language: str) -> str:
    text = (SOURCE / "README.md").read_text()
    return text.split(f"```{language}\n", 1)[1].split("```", 1)[0]


def main(names: tuple[str, ...] | None = None) -> None:
    """Runs the tests of the calling file, or those named; the last line counts them."""
    if os.geteuid() != 0:
        sys.exit("these tests create Debian roots and need root: run sudo make test-packages")
    result = unittest.main(module="__main__", defaultTest=names, exit=False, verbosity=2, testRunner=unittest.TextTestRunner(
        stream=sys.stdout, verbosity=2)).result
    failed = len(result.failures) + len(result.errors)
    skipped = len(result.skipped)
    print(f"{result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)
