"""kill -9 at every step of import and remove leaves a store that verifies.

strace kills the program at its N-th system call of a kind that changes files or directories; every N is tried until the
program finishes by itself.
"""
import json
import os

from world import CAISSON, ImageTest, directory, entry, link, needs, oci_layout, tar_bytes

CALLS = "openat,mkdirat,renameat2,renameat,rename,unlinkat,write,pwrite64,fchmod,fsync,syncfs,symlinkat,linkat,mknodat,flock,ftruncate,utimensat"
STEP = int(os.environ.get("CAISSON_CRASH_STEP", "7"))  # 1: really every call


@needs("strace")
class KilledAtEachStep(ImageTest):
    def setUp(self):
        super().setUp()
        program = os.path.join(os.path.dirname(CAISSON), "caisson-image")
        self.program = program
        oci_layout(self.scratch / "app", [tar_bytes([directory("d"), entry("d/f", b"f" * 5000), link("l", "d")]),
                                          tar_bytes([entry("d/.wh.f"), entry("g", b"g")])], name="1")
        self.must("import", "-q", self.write_tar("base.tar", [entry("base", b"base")]), "base:1")

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

    def check_store(self):
        names = {item["name"] for item in json.loads(self.must("list", "--json").out)}
        self.assertIn("docker.io/library/base:1", names)
        self.assertLessEqual(names, {"docker.io/library/base:1", "docker.io/library/app:1"})
        self.assert_store_clean()

    def test_import(self):
        # CONFORMS("R-IMAGE-6")
        def prepare():
            if "docker.io/library/app:1" in self.must("list", "--json").out:
                self.must("remove", "app:1")
            else:
                self.must("prune")

        self.sweep(prepare, self.check_store, "import", "--quiet", str(self.scratch / "app"))
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
