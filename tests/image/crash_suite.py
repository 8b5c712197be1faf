"""kill -9 at every step of import, remove, pull and build leaves a store that verifies.

strace kills the program at its N-th system call that changes files or directories; every N is tried until the program
finishes.
"""
import json
import os
import signal
import subprocess
import time

from build_suite import BuildTest
from registry_case import RegistryTest
from world import CAISSON, ImageTest, directory, entry, link, needs, oci_layout, tar_bytes

CALLS = "openat,mkdirat,renameat2,renameat,rename,unlinkat,write,pwrite64,fchmod,fsync,syncfs,symlinkat,linkat,mknodat,flock,ftruncate,utimensat"
STEP = int(os.environ.get("CAISSON_CRASH_STEP", "7"))  # 1: every call


class Sweep:
    """Runs a command repeatedly, and kills it a little later each time."""

    program = os.path.join(os.path.dirname(CAISSON), "caisson-image")
    expected = {"docker.io/library/base:1"}  # always present
    made = {"docker.io/library/app:1"}       # created by the command

    def killed_at(self, number, *words):
        """Runs caisson-image without following its children; returns whether it was killed."""
        done = self.run_program("strace", "-o", "/dev/null", "-e", f"trace={CALLS}", "-e", f"inject={CALLS}:signal=KILL:when={number}",
                                self.program, "image", *words)
        self.assertIn(done.status, (0, -9, 137), done.text)
        return done.status != 0

    def sweep(self, prepare, check, *words):
        number, killed = 1, 0
        while True:
            prepare()
            if not self.killed_at(number, *words):
                break
            killed += 1
            check()
            number += STEP
            self.assertLess(number, 5000)
        self.assertGreater(killed, 3)
        return killed

    def sweep_by_time(self, prepare, check, *words, times=24):
        """For work in other threads: kills at different times. The longest run determines the interval."""
        prepare()
        began = time.monotonic()
        self.must(*words)
        whole = time.monotonic() - began
        check()
        killed = 0
        for number in range(times):
            prepare()
            with subprocess.Popen([self.program, "image", *words], env=self.environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
                try:
                    running.wait(whole * (number + 1) / times)
                except subprocess.TimeoutExpired:
                    running.send_signal(signal.SIGKILL)
                    killed += 1
            check()
        self.assertGreater(killed, 3)

    def forget(self):
        """Removes the results of an earlier run."""
        made = [name for name in self.made if name in self.must("list", "--json").out]
        for name in made:
            self.must("remove", name)
        self.must("prune")

    def names(self):
        """Every command that opens the store also removes what killed ones left."""
        return {item["name"] for item in json.loads(self.must("list", "--json").out) if item["name"]}

    def check_store(self):
        names = self.names()
        deadline = time.monotonic() + 10
        # The lock of a transaction ends with the last process that was started in it: some moments after a kill.
        while any((self.store / "tmp").iterdir()) and time.monotonic() < deadline:
            time.sleep(0.02)
            names = self.names()
        self.assertLessEqual(self.expected, names)
        self.assertLessEqual(names, self.expected | self.made)
        self.assert_store_clean()


@needs("strace")
class KilledAtEachStep(Sweep, ImageTest):
    def setUp(self):
        super().setUp()
        oci_layout(self.scratch / "app", [tar_bytes([directory("d"), entry("d/f", b"f" * 5000), link("l", "d")]),
                                          tar_bytes([entry("d/.wh.f"), entry("g", b"g")])], name="1")
        self.must("import", "-q", self.write_tar("base.tar", [entry("base", b"base")]), "base:1")

    def test_import(self):
        # CONFORMS("R-IMAGE-6")
        self.sweep(self.forget, self.check_store, "import", "--quiet", str(self.scratch / "app"))
        self.check_store()
        self.assertEqual(len(self.roots("app:1")), 2)

    def test_remove(self):
        # CONFORMS("R-IMAGE-6")
        def prepare():
            self.must("import", "-q", self.scratch / "app")

        self.sweep(prepare, self.check_store, "remove", "app:1")
        self.must("prune")
        self.assertEqual(len(list((self.store / "layers").iterdir())), 1)
        self.check_store()


@needs("strace")
class KilledPull(Sweep, RegistryTest):
    def setUp(self):
        super().setUp()
        self.reference = self.push()
        self.other_home()
        self.made = {self.reference}
        self.must("import", "-q", self.write_tar("base.tar", [entry("base", b"base")]), "base:1")

    def test_pull_at_each_step(self):
        # CONFORMS("R-IMAGE-6")
        self.sweep(self.forget, self.check_store, "pull", "--quiet", self.reference)
        self.check_store()
        self.assertEqual(len(self.roots(self.reference)), 2)

    def test_pull_at_any_time(self):
        # CONFORMS("R-IMAGE-6")
        self.sweep_by_time(self.forget, self.check_store, "pull", "--quiet", self.reference)
        self.must("pull", "--quiet", self.reference)  # also continues a partial download
        self.check_store()


@needs("strace")
class KilledBuild(Sweep, BuildTest):
    expected = {"docker.io/library/busybox:1"}

    def setUp(self):
        super().setUp()
        self.write("file", "data\n")

    def end_sessions(self):
        """A killed build leaves the session of its RUN, which ends with its creator."""
        done = self.run_program(CAISSON, "clean", "--all")
        self.assertEqual(done.status, 0, done.text)
        self.forget()

    def test_copy_at_each_step(self):
        # CONFORMS("R-IMAGE-6")
        self.write("Containerfile", "FROM busybox:1\nCOPY file /data/\nENV A=b\n")
        self.sweep(self.end_sessions, self.check_store, "build", "--quiet", "-t", "app:1", str(self.context))
        self.check_store()
        self.assertEqual(self.merged()["data/file"], b"data\n")

    def test_run_at_any_time(self):
        # CONFORMS("R-IMAGE-6")
        self.write("Containerfile", "FROM busybox:1\nRUN mkdir /made && echo 1 >/made/one\nRUN rm /etc/gone\n")
        self.sweep_by_time(self.end_sessions, self.check_store, "build", "--quiet", "-t", "app:1", str(self.context))
        self.must("build", "--quiet", "-t", "app:1", str(self.context))
        self.assertEqual(self.merged()["made/one"], b"1\n")
        self.end_sessions()
        self.assertEqual(list((self.home / "stores").iterdir()), [], "sessions of killed builds")
