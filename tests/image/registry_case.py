"""The base of tests with a real registry."""
import os
import shutil

from registry import Front, Registry
from world import ImageTest, entry, directory, needs, oci_layout, tar_bytes

LAYERS = [tar_bytes([directory("etc"), entry("etc/motd", b"hello\n")]), tar_bytes([entry("big", os.urandom(3 << 20))])]


@needs("docker-registry", "htpasswd", "openssl")
class RegistryTest(ImageTest):
    secure = False

    def setUp(self):
        super().setUp()
        self.registry = Registry(self.scratch / "registry", self.secure)
        self.addCleanup(self.registry.close)
        self.digest = oci_layout(self.scratch / "app", LAYERS, {"config": {"Cmd": ["sh"]}}, name="1")
        if self.secure:
            self.configure_client()
        self.must("import", "-q", self.scratch / "app")

    def configure_client(self):
        certificates = self.scratch / ".config/containers/certs.d" / self.registry.host
        certificates.mkdir(parents=True)
        shutil.copy(self.registry.folder / "ca.crt", certificates / "ca.crt")

    def other_home(self, name="other"):
        """Later commands use an empty store."""
        self.environment["CAISSON_HOME"] = str(self.scratch / name)
        self.home = self.scratch / name

    def configure_owner(self, text):
        folder = self.scratch / "config/caisson"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.toml").write_text(text)
        os.chmod(folder / "config.toml", 0o600)

    def front(self, answer, certificates=None):
        front = Front(self.registry.host, answer, certificates)
        self.addCleanup(front.close)
        return front

    def push(self):
        self.must("push", "-q", "app:1", f"{self.registry.host}/team/app:1")
        return f"{self.registry.host}/team/app:1"
