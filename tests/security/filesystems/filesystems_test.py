#!/usr/bin/env python3
"""Secrets on file systems whose times are coarse, or whose names ignore case: the index of the search hides nothing.

Needs root, for loop mounts in a new mount namespace; caisson runs as an ordinary user. A file system that this
kernel lacks is skipped. The tested program is CAISSON_BIN. `--make DIRECTORY` only makes the images, for a machine that
lacks the programs for it; there CAISSON_TEST_IMAGES names the directory. CAISSON_MUST_RUN: those that may not be skipped.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

CAISSON = os.environ.get("CAISSON_BIN", os.path.join(os.path.dirname(__file__), "../../../build/caisson"))
USER = 4242
SKIPPED = 77
SETTLED = 2.3  # seconds after which the index trusts a directory
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nsecret-canary\n-----END OPENSSH PRIVATE KEY-----\n"


def own(path):
    os.chown(path, USER, USER)


class Mounted(unittest.TestCase):
    """One file system per class, made by `make` (a command; {} is the image) and mounted with `options`."""
    make, kind, options, size = [], "", "", 64 << 20
    mode = "overlay"

    @classmethod
    def setUpClass(cls):
        if not cls.kind:
            raise unittest.SkipTest("has no file system")
        cls.base = tempfile.mkdtemp(prefix="ca-fs-", dir="/tmp")
        os.chmod(cls.base, 0o755)
        cls.root, cls.home = cls.base + "/tree", cls.base + "/home"
        for directory in (cls.root, cls.home):
            os.mkdir(directory)
            own(directory)
        command = ["mount", "-t", cls.kind]
        if cls.options:
            command += ["-o", cls.options]
        if cls.make:
            image = cls.base + "/image"
            ready = os.path.join(os.environ.get("CAISSON_TEST_IMAGES", ""), cls.__name__)
            if os.path.exists(ready):
                shutil.copyfile(ready, image)
            elif not cls.make_image(image):
                raise unittest.SkipTest(f"{cls.make[0]} cannot make it")
            command += [image, cls.root]
        else:
            command += ["none", cls.root]
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
        if mounted.returncode:
            raise unittest.SkipTest(f"this kernel cannot mount it: {mounted.stderr.strip()}")
        if cls.kind != "vfat":
            own(cls.root)

    @classmethod
    def make_image(cls, path):
        """Whether the program for it is there and succeeds."""
        with open(path, "wb") as file:
            file.truncate(cls.size)
        try:
            return subprocess.run([word.format(path) for word in cls.make], capture_output=True, check=False).returncode == 0
        except FileNotFoundError:
            return False

    @classmethod
    def tearDownClass(cls):
        subprocess.run(["umount", cls.root], check=False)
        subprocess.run(["rm", "-rf", cls.base], check=False)

    def run_inside(self, command, mode=None):
        environment = dict(os.environ, CAISSON_HOME=self.home, HOME=self.home)
        done = subprocess.run(
            ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", CAISSON, "run", "-q", "--workspace",
             f"{self.root}:{mode or self.mode}", "--", "sh", "-c", command + "; true"],
            env=environment, cwd=self.root, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def write(self, path, text):
        whole = os.path.join(self.root, path)
        if not os.path.isdir(os.path.dirname(whole)):
            os.makedirs(os.path.dirname(whole))
        with open(whole, "w") as file:
            file.write(text)
        if self.kind != "vfat":
            for name in (os.path.dirname(whole), whole):
                own(name)

    def fill(self, name):
        """Enough directories for an index."""
        for number in range(80):
            self.write(f"{name}/d{number}/file.c", "int x;\n")

    def assertHidden(self, path, ordinary):
        output = self.run_inside(f"cat {path} 2>/dev/null; cat {ordinary}")
        self.assertIn("int x;", output)
        self.assertNotIn("secret-canary", output)


class Cases:
    """What holds on each file system."""

    def test_secret_that_comes_right_after_a_search(self):
        self.fill("new")
        for number, delay in enumerate((0, 0.2, 0.5, 0.9, 1.3, 1.8, 2.0, SETTLED)):
            directory = f"new/d{number}"
            self.write(f"{directory}/another.c", "int x;\n")
            time.sleep(delay)
            self.run_inside("true")
            self.write(f"{directory}/.env", "KEY=secret-canary\n")
            self.assertHidden(f"{directory}/.env", f"{directory}/file.c")

    def test_restored_time_of_a_directory(self):
        self.fill("restored")
        time.sleep(SETTLED)
        self.run_inside("true")
        directory = os.path.join(self.root, "restored/d5")
        before = os.stat(directory)
        self.write("restored/d5/prod.env", "KEY=secret-canary\n")
        os.utime(directory, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertHidden("restored/d5/prod.env", "restored/d5/file.c")

    def test_content_that_changes_in_place(self):
        self.fill("content")
        harmless = "x" * (len(KEY) - 1) + "\n"
        self.write("content/d7/deploy_key", harmless)
        time.sleep(SETTLED)
        self.run_inside("true")
        path = os.path.join(self.root, "content/d7/deploy_key")
        before = os.stat(path)
        with open(path, "r+") as file:
            file.write(KEY)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertHidden("content/d7/deploy_key", "content/d7/file.c")

    def test_renamed_parent(self):
        self.fill("renamed")
        self.write("renamed/d9/gcloud/credentials.db", "secret-canary")
        time.sleep(SETTLED)
        self.run_inside("true")
        os.rename(os.path.join(self.root, "renamed/d9"), os.path.join(self.root, "renamed/.config"))
        self.assertHidden("renamed/.config/gcloud/credentials.db", "renamed/.config/file.c")


class IgnoringCase:
    def test_other_spellings_of_a_secret(self):
        self.fill("case")
        self.write("case/d1/.env", "KEY=secret-canary\n")
        self.write("case/.AWS/CREDENTIALS", "[default]\naws_secret_access_key = secret-canary\n")
        for _ in range(2):
            for path in ("case/d1/.env", "case/d1/.ENV", "case/D1/.EnV", "case/.aws/credentials", "case/.Aws/Credentials"):
                self.assertHidden(path, "case/d2/FILE.C")
            time.sleep(SETTLED)


class Ext2(Cases, Mounted):
    """Times in whole seconds."""
    make, kind = ["mke2fs", "-q", "-F", "-t", "ext2", "-I", "128", "{}"], "ext2"


class Ext2InPlace(Ext2):
    mode = "rw"


class Ext2Commits(Mounted):
    """A commit does not overwrite what the host wrote in the second in which the session began, or committed."""
    make, kind = ["mke2fs", "-q", "-F", "-t", "ext2", "-I", "128", "{}"], "ext2"

    def session(self, *arguments, status=0):
        environment = dict(os.environ, CAISSON_HOME=self.home, HOME=self.home)
        done = subprocess.run(
            ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", CAISSON, "session", *arguments],
            env=environment, cwd=self.root, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def content(self, path):
        with open(os.path.join(self.root, path)) as file:
            return file.read()

    @staticmethod
    def await_second():
        time.sleep(1 - time.time() % 1 + 0.02)

    def test_edit_in_the_second_of_the_beginning_or_of_a_commit(self):
        for path in ("w/a", "w/b", "w/tree/x"):
            self.write(path, "orig1\n")
        time.sleep(SETTLED)
        self.await_second()
        self.session("create", "--name", "n", "--workspace", os.path.join(self.root, "w"))
        self.write("w/a", "host1\n")
        self.write("w/tree/x", "host1\n")
        self.session("exec", "n", "--", "sh", "-c", "echo sess1 > a; rm -r tree")
        output = self.session("commit", "n", status=1)
        self.assertIn("conflict: a", output)
        self.assertIn("conflict: tree", output)
        self.assertEqual(self.content("w/a"), "host1\n")
        self.assertEqual(self.content("w/tree/x"), "host1\n")
        self.session("exec", "n", "--", "sh", "-c", "echo sess1 > b")
        self.await_second()
        self.session("commit", "n", "b")
        self.write("w/b", "host2\n")
        self.session("exec", "n", "--", "sh", "-c", "echo sess2 > b")
        self.session("commit", "n", "b", status=1)
        self.assertEqual(self.content("w/b"), "host2\n")
        # Without an edit of the host, the session's file does not conflict.
        self.session("commit", "--theirs", "b", "n", "b")
        self.session("exec", "n", "--", "sh", "-c", "echo sess3 > b")
        self.session("commit", "n", "b")
        self.assertEqual(self.content("w/b"), "sess3\n")
        self.session("destroy", "n")


class Ext4Casefold(Cases, IgnoringCase, Mounted):
    make, kind = ["mke2fs", "-q", "-F", "-t", "ext4", "-O", "casefold", "-E", "encoding=utf8", "{}"], "ext4"
    mode = "rw"  # the kernel has no overlay on such directories

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run(["rmdir", cls.root + "/lost+found"], check=False)
        if subprocess.run(["chattr", "+F", cls.root], capture_output=True, check=False).returncode:
            cls.tearDownClass()
            raise unittest.SkipTest("the directory cannot ignore case")


class TmpfsCasefold(Cases, IgnoringCase, Mounted):
    kind, options, mode = "tmpfs", "casefold", "rw"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if subprocess.run(["chattr", "+F", cls.root], capture_output=True, check=False).returncode:
            cls.tearDownClass()
            raise unittest.SkipTest("the directory cannot ignore case")


class Vfat(Cases, IgnoringCase, Mounted):
    """Times in steps of two seconds, and names that ignore case."""
    make, kind, options = ["mkfs.vfat", "{}"], "vfat", f"uid={USER},gid={USER},umask=022"
    mode = "rw"


class Btrfs(Cases, Mounted):
    make, kind, size = ["mkfs.btrfs", "-q", "{}"], "btrfs", 256 << 20


class Xfs(Cases, Mounted):
    make, kind, size = ["mkfs.xfs", "-q", "{}"], "xfs", 512 << 20


def make_images(directory):
    for kind in (Vfat, Btrfs, Xfs):
        if not kind.make_image(f"{directory}/{kind.__name__}"):
            print(f"{kind.make[0]} is missing", file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        make_images(sys.argv[2])
        sys.exit(0)
    if os.geteuid() != 0:
        print("needs root")
        sys.exit(SKIPPED)
    if os.environ.get("CAISSON_TEST_MOUNTS") != "own":
        os.environ["CAISSON_TEST_MOUNTS"] = "own"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, "-B", *sys.argv])
    outcome = unittest.main(verbosity=2, exit=False).result
    skipped = " ".join(str(test) for test, _ in outcome.skipped)
    missing = [name for name in os.environ.get("CAISSON_MUST_RUN", "").split() if f".{name})" in skipped]
    if missing:
        print("not run: " + " ".join(missing))
    sys.exit(bool(missing) or not outcome.wasSuccessful())
