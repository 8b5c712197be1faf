#!/usr/bin/env python3
"""Images as the root of sandboxes, with a real server."""
import json
import os
import re
import shutil
import subprocess
import tempfile

import api
from api import ApiTest


def busybox_root(folder):
    """Creates a root file system in `folder`: busybox, its libraries, and a file that does not exist on hosts."""
    os.makedirs(f"{folder}/bin")
    shutil.copy("/bin/busybox", f"{folder}/bin")
    listed = subprocess.run(["ldd", "/bin/busybox"], capture_output=True, text=True, check=False).stdout
    for library in re.findall(r"/[^ ]*", listed):
        os.makedirs(folder + os.path.dirname(library), exist_ok=True)
        shutil.copy(library, folder + library)
    for applet in ("sh", "cat", "echo", "ls"):
        os.symlink("busybox", f"{folder}/bin/{applet}")
    with open(f"{folder}/of-the-image", "w", encoding="ascii") as file:
        file.write("hello from the image\n")


class Images(ApiTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with tempfile.TemporaryDirectory(prefix="ca-") as folder:
            os.chmod(folder, 0o755)
            busybox_root(folder)
            done = cls.server.caisson("image", "import", "-q", folder, "box:1")
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        # The template is added after the import: a server does not start with a template whose image is missing.
        cls.server.stop()
        config = os.path.join(cls.server.home, "server.toml")
        with open(config, "w", encoding="ascii") as file:
            file.write('[templates.box]\nprofile = "bash"\nimage = "box:1"\npool = 1\n')
        cls.server.options += ["--config", config]
        cls.server.start()

    def assertRunsInTheImage(self, box):
        shown = self.alice.run(box, ["/bin/sh", "-c", "cat /of-the-image; ls /usr/bin/python3"])
        self.assertStatus(shown, 200)
        self.assertEqual(shown.json["stdout"], "hello from the image\n")
        self.assertNotEqual(shown.json["exit_code"], 0, "the host's /usr is visible")

    def test_an_image_is_the_root(self):
        # CONFORMS("R-IMAGE-1")
        names = json.dumps(self.alice.call("GET", "/v1/images").json["images"])
        self.assertIn("box:1", names)
        self.assertRunsInTheImage(self.alice.create(image="box:1"))

    def test_a_template_has_an_image(self):
        self.assertRunsInTheImage(self.alice.create(template="box"))

    def test_a_missing_image_is_refused_with_its_name(self):
        reply = self.assertStatus(self.alice.call("POST", "/v1/sandboxes", {"image": "none:1"}), 400)
        self.assertIn("none:1", reply.json["reason"])


class Runtimes(ApiTest):
    def test_a_policy_with_an_oci_runtime_is_refused(self):
        policy = {"isolation": {"runtime": "crun", "may_be_missing": ["runtime"]}}
        # The owner may set the key, but sessions do not use a runtime. A token may not set it.
        refused = self.owner.call("POST", "/v1/sandboxes", {"policy": policy})
        self.assertEqual(refused.status, 400, refused)
        self.assertIn("runtime", refused.json["reason"])
        self.assertStatus(self.alice.call("POST", "/v1/sandboxes", {"policy": policy}), 403)
        self.assertEqual(self.owner.call("GET", "/v1/sandboxes").json["sandboxes"], [])


if __name__ == "__main__":
    api.main()
