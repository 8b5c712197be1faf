"""pull and push with registries that are hostile, or need passwords, tokens, certificates or signatures."""
import base64
import json
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse

from registry import PASSWORD, USER, Front, auth_entry, make_certificates
from registry_case import LAYERS, RegistryTest
from world import CAISSON, ImageTest, entry, needs, oci_layout, sha256, tar_bytes


class HostileRegistry(RegistryTest):
    def refused(self, answer, expected, name="team/app:1"):
        front = self.front(answer)
        self.other_home(f"home{front.port}")
        result = self.image("pull", "-q", f"{front.host}/{name}")
        self.assertEqual(result.status, 125, result.text)
        self.assertIn(expected, result.err)
        self.assertEqual(json.loads(self.must("list", "--json").out), [])
        return front

    def test_changed_content_is_refused(self):
        # CONFORMS("R-IMAGE-2")
        self.push()
        big = sha256(LAYERS[1])
        wrong = bytes(len(LAYERS[1]))

        def other_blob(data):
            return lambda handler, front: handler.path.endswith(big) and handler.reply(200, {}, data)

        self.refused(other_blob(wrong), "another digest")
        self.refused(other_blob(LAYERS[1] + b"x"), "larger than")
        self.refused(other_blob(LAYERS[1][:-1]), "shorter than")
        manifest = (self.scratch / "app/blobs/sha256" / self.digest[7:]).read_bytes()
        self.refused(lambda handler, front: "/manifests/" in handler.path and handler.reply(200, {"Docker-Content-Digest": self.digest}, manifest + b" "), "another digest")
        self.refused(lambda handler, front: "/manifests/" in handler.path and handler.reply(200, {}, manifest + b" "), "another digest", f"team/app@{self.digest}")

    def test_endless_and_malformed_answers_are_refused(self):
        self.refused(lambda handler, front: handler.reply(200, {}, b"x" * (5 << 20)), "larger than expected")
        self.refused(lambda handler, front: handler.reply(200, {}, b"{}"), "schema version 2 is expected")
        self.refused(lambda handler, front: handler.reply(200, {}, b"\xff\xfe"), "")
        self.refused(lambda handler, front: handler.reply(302, {"Location": f"http://{front.host}{handler.path}"}), "too many redirects")
        self.refused(lambda handler, front: handler.reply(302, {"Location": "file:///etc/passwd"}), "")
        self.refused(lambda handler, front: handler.reply(302, {"Location": "gopher://127.0.0.1/"}), "")

    def test_credentials_are_not_sent_to_another_host(self):
        # CONFORMS("R-IMAGE-4")
        self.push()
        elsewhere = self.front(lambda handler, front: False)

        def redirect(handler, front):
            if handler.headers.get("Authorization") is None:
                return handler.reply(401, {"WWW-Authenticate": 'Basic realm="x"'})
            if "/blobs/" in handler.path:
                return handler.reply(307, {"Location": f"http://{elsewhere.host}{handler.path}"})
            return False

        front = self.front(redirect)
        (self.scratch / ".docker").mkdir()
        (self.scratch / ".docker/config.json").write_text(json.dumps({"auths": {front.host: {"auth": auth_entry()}}}))
        self.other_home()
        self.must("pull", "-q", f"{front.host}/team/app:1")
        self.assertTrue(any("Authorization" in headers for _, _, headers in front.requests))
        self.assertTrue(elsewhere.requests)
        self.assertFalse(any("Authorization" in headers for _, _, headers in elsewhere.requests))

    def test_challenge_of_another_host_gets_no_credentials(self):
        # CONFORMS("R-IMAGE-4")
        self.push()
        collector = self.front(lambda handler, front: handler.reply(200, {}, b'{"token": "t"}'))
        for challenge in (f'Bearer realm="http://{collector.host}/token",service="x"', 'Basic realm="x"'):
            elsewhere = self.front(lambda handler, front, text=challenge: handler.reply(401, {"WWW-Authenticate": text}))

            def redirect(handler, front, to=elsewhere):
                if "/blobs/" in handler.path:
                    return handler.reply(307, {"Location": f"http://{to.host}{handler.path}"})
                return False

            front = self.front(redirect)
            (self.scratch / ".docker").mkdir(exist_ok=True)
            (self.scratch / ".docker/config.json").write_text(json.dumps({"auths": {front.host: {"auth": auth_entry()}}}))
            self.other_home(f"home{front.port}")
            result = self.image("pull", "-q", f"{front.host}/team/app:1")
            self.assertEqual(result.status, 125, result.text)
            self.assertIn("answered 401", result.err)
            self.assertTrue(elsewhere.requests)
            self.assertEqual(collector.requests, [])
            self.assertFalse(any("Authorization" in headers for _, _, headers in front.requests + elsewhere.requests))

    def test_challenge_of_the_host_of_an_upload_gets_no_credentials(self):
        collector = self.front(lambda handler, front: handler.reply(200, {}, b'{"token": "t"}'))
        challenge = f'Bearer realm="http://{collector.host}/token",service="x"'
        elsewhere = self.front(lambda handler, front: handler.reply(401, {"WWW-Authenticate": challenge}))
        front = self.front(lambda handler, front: handler.command == "POST" and handler.reply(202, {"Location": f"http://{elsewhere.host}/upload"}))
        (self.scratch / ".docker").mkdir()
        (self.scratch / ".docker/config.json").write_text(json.dumps({"auths": {front.host: {"auth": auth_entry()}}}))
        self.assertIn("answered 401", self.image("push", "-q", "app:1", f"{front.host}/team/app:1").err)
        self.assertEqual(collector.requests, [])

    def test_name_that_begins_like_a_loopback_address_needs_tls(self):
        # CONFORMS("R-IMAGE-4")
        lines = []
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def proxy():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    line = connection.makefile("rb").readline().decode()
                    lines.append(line)
                    # A tunnel in which nothing speaks TLS.
                    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nno TLS here\n" if line.startswith("CONNECT") else b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

        threading.Thread(target=proxy, daemon=True).start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.environment.update(http_proxy=address, https_proxy=address, no_proxy="")
        for name in ("127.example.org", "127.0.0.1.example.org", "127.0.0.1x"):
            self.assertEqual(self.image("pull", "-q", f"{name}:5000/team/app:1").status, 125)
            self.assertIn(f"CONNECT {name}:5000 HTTP/1.1\r\n", lines)
        self.assertEqual([line for line in lines if not line.startswith("CONNECT")], [])

    def test_blob_of_a_running_pull_is_not_changed_by_another(self):
        # CONFORMS("R-IMAGE-2")
        self.push()
        first, big = sha256(LAYERS[0]), sha256(LAYERS[1])
        begun, release = threading.Event(), threading.Event()

        def stall(handler, front):
            if handler.path.endswith(big):
                begun.set()
                release.wait(60)
            return False

        machine = {"aarch64": "arm64", "x86_64": "amd64"}.get(os.uname().machine, os.uname().machine)
        config = json.dumps({"os": "linux", "architecture": machine, "rootfs": {"type": "layers", "diff_ids": [first]}}).encode()
        manifest = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                               "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": sha256(config), "size": len(config)},
                               "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": first, "size": 1}]}).encode()

        def other(handler, front):
            return handler.reply(200, {}, manifest if "/manifests/" in handler.path else config if handler.path.endswith(sha256(config)) else b"x")

        front, hostile = self.front(stall), self.front(other)
        self.other_home()
        pulling = subprocess.Popen([os.environ["CAISSON_BIN"], "image", "pull", "-q", f"{front.host}/team/app:1"], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            self.assertTrue(begun.wait(20))
            partial = self.store / "partial" / first[7:]
            deadline = time.monotonic() + 20
            while (not partial.exists() or partial.stat().st_size != len(LAYERS[0])) and time.monotonic() < deadline:
                time.sleep(0.05)
            time.sleep(0.5)  # the file is complete; its digest is checked right after
            refused = self.image("pull", "-q", f"{hostile.host}/team/other:1")
            self.assertEqual(refused.status, 125, refused.text)
        finally:
            release.set()
            error = pulling.communicate(timeout=60)[1]
        self.assertEqual(pulling.returncode, 0, error)
        self.assert_store_clean()


class Tokens(RegistryTest):
    def token_front(self, accept):
        """A registry that requires a token, and its token server."""
        def answer(handler, front):
            url = urllib.parse.urlsplit(handler.path)
            if url.path == "/token":
                front.scopes = urllib.parse.parse_qs(url.query).get("scope")
                if not accept(handler):
                    return handler.reply(401)
                return handler.reply(200, {}, json.dumps({"token": "secret-token"}).encode())
            if handler.headers.get("Authorization") != "Bearer secret-token":
                challenge = f'Bearer realm="http://{front.host}/token",service="registry",scope="repository:team/app:pull"'
                return handler.reply(401, {"WWW-Authenticate": challenge})
            del handler.headers["Authorization"]
            return False

        return self.front(answer)

    def test_anonymous_token_is_fetched(self):
        # CONFORMS("R-IMAGE-4")
        self.push()
        front = self.token_front(lambda handler: "Authorization" not in handler.headers)
        self.other_home()
        self.must("pull", "-q", f"{front.host}/team/app:1")
        self.assertEqual(front.scopes, ["repository:team/app:pull"])

    def test_token_is_fetched_with_the_password_of_a_helper(self):
        self.push()
        wanted = "Basic " + auth_entry()
        front = self.token_front(lambda handler: handler.headers.get("Authorization") == wanted)
        self.other_home()
        refused = self.image("pull", "-q", f"{front.host}/team/app:1")
        self.assertIn("requires a login", refused.err)
        tools = self.scratch / "tools"
        tools.mkdir()
        helper = tools / "docker-credential-test"
        helper.write_text(f"#!/bin/sh\nread -r host\n[ \"$1\" = get ] && [ \"$host\" = {front.host} ] || exit 1\n"
                          f"echo '{json.dumps({'ServerURL': front.host, 'Username': USER, 'Secret': PASSWORD})}'\n")
        helper.chmod(0o755)
        self.environment["PATH"] = f"{tools}:{os.environ['PATH']}"
        (self.scratch / "config/containers").mkdir(parents=True)
        (self.scratch / "config/containers/auth.json").write_text(json.dumps({"credHelpers": {front.host: "test"}}))
        self.must("pull", "-q", f"{front.host}/team/app:1")


class SecureRegistry(RegistryTest):
    secure = True

    def login(self):
        (self.scratch / ".docker").mkdir(exist_ok=True)
        (self.scratch / ".docker/config.json").write_text(json.dumps({"auths": {self.registry.host: {"auth": auth_entry()}}}))

    def test_password_and_authority_are_needed(self):
        # CONFORMS("R-IMAGE-4")
        target = f"{self.registry.host}/team/app:1"
        self.assertIn("requires a login", self.image("push", "-q", "app:1", target).err)
        (self.scratch / ".docker").mkdir()
        wrong = base64.b64encode(b"alice:wrong").decode()
        (self.scratch / ".docker/config.json").write_text(json.dumps({"auths": {self.registry.host: {"auth": wrong}}}))
        self.assertIn("refused your credentials", self.image("push", "-q", "app:1", target).err)
        self.login()
        self.must("push", "-q", "app:1", target)
        self.other_home()
        self.must("pull", "-q", target)
        self.assertEqual(self.inspect(target)["Digest"], self.digest)
        shutil.rmtree(self.scratch / ".config/containers/certs.d")
        refused = self.image("pull", "-q", target)
        self.assertEqual(refused.status, 125)
        self.assertIn("certs.d", refused.err)

    @needs("skopeo")
    def test_skopeo_sees_the_same_digests_in_both_directions(self):
        # CONFORMS("R-IMAGE-4")
        self.login()
        target = f"{self.registry.host}/team/app:1"
        self.must("push", "-q", "app:1", target)
        tls = ["--authfile", self.scratch / ".docker/config.json"]
        certificates = self.scratch / ".config/containers/certs.d" / self.registry.host
        copied = self.run_program("skopeo", "--insecure-policy", "copy", "--preserve-digests", *tls, "--src-cert-dir", certificates, f"docker://{target}", f"oci:{self.scratch}/copy:1")
        self.assertEqual(copied.status, 0, copied.text)
        index = json.loads((self.scratch / "copy/index.json").read_text())
        self.assertEqual(index["manifests"][0]["digest"], self.digest)
        second = f"{self.registry.host}/team/second:1"
        copied = self.run_program("skopeo", "--insecure-policy", "copy", "--preserve-digests", *tls, "--dest-cert-dir", certificates, f"oci:{self.scratch}/copy:1", f"docker://{second}")
        self.assertEqual(copied.status, 0, copied.text)
        self.other_home()
        self.must("pull", "-q", second)
        self.assertEqual(self.inspect(second)["Digest"], self.digest)
        self.assert_store_clean()


class CertificatesOfOneRegistry(RegistryTest):
    def setUp(self):
        super().setUp()
        self.certificates = self.scratch / "certificates"
        self.certificates.mkdir()
        make_certificates(self.certificates)
        self.push()

    def configure(self, host, *names):
        folder = self.scratch / ".config/containers/certs.d" / host
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            shutil.copy(self.certificates / name, folder / name.replace("client.crt", "client.cert"))

    def check_pull(self, front, elsewhere):
        self.configure(front.host, "ca.crt", "client.crt", "client.key")
        self.other_home(f"home{front.port}")
        refused = self.image("pull", "-q", f"{front.host}/team/app:1")
        self.assertEqual(refused.status, 125, refused.text)
        self.assertIn("certs.d", refused.err)
        self.assertEqual(elsewhere.requests, [], "the authority of the registry was trusted for another host")
        self.configure(elsewhere.host, "ca.crt")
        self.must("pull", "-q", f"{front.host}/team/app:1")
        self.assertTrue(elsewhere.requests)
        self.assertEqual(elsewhere.client_names, {None}, "another host got the client certificate of the registry")
        self.assertEqual(front.client_names, {"client"})

    def test_do_not_apply_to_redirect_targets(self):
        # CONFORMS("R-IMAGE-4")
        elsewhere = self.front(lambda handler, front: False, self.certificates)

        def redirect(handler, front):
            return "/blobs/" in handler.path and handler.reply(307, {"Location": f"https://{elsewhere.host}{handler.path}"})

        self.check_pull(self.front(redirect, self.certificates), elsewhere)

    def test_do_not_apply_to_token_servers(self):
        # CONFORMS("R-IMAGE-4")
        elsewhere = self.front(lambda handler, front: handler.reply(200, {}, b'{"token": "t"}'), self.certificates)

        def challenge(handler, front):
            if handler.headers.get("Authorization") != "Bearer t":
                return handler.reply(401, {"WWW-Authenticate": f'Bearer realm="https://{elsewhere.host}/token",service="x"'})
            del handler.headers["Authorization"]
            return False

        self.check_pull(self.front(challenge, self.certificates), elsewhere)


class Signatures(RegistryTest):
    def sign(self, repository, digest, key, signed_as=None):
        """Uploads a signature as cosign does."""
        name = f"{self.registry.host}/{repository}" if signed_as is None else signed_as
        payload = json.dumps({"critical": {"identity": {"docker-reference": name}, "image": {"docker-manifest-digest": digest}, "type": "cosign container image signature"}, "optional": None}).encode()
        (self.scratch / "payload").write_bytes(payload)
        done = subprocess.run(["openssl", "dgst", "-sha256", "-sign", str(key), str(self.scratch / "payload")], check=True, stdout=subprocess.PIPE)
        def annotate(manifest):
            manifest["layers"] = [{"mediaType": "application/vnd.dev.cosign.simplesigning.v1+json", "digest": sha256(payload), "size": len(payload),
                                   "annotations": {"dev.cosignproject.cosign/signature": base64.b64encode(done.stdout).decode()}}]
        layout = self.scratch / f"sig{len(list(self.scratch.iterdir()))}"
        oci_layout(layout, [payload], name="sig", manifest_change=annotate)
        tag = digest.replace(":", "-") + ".sig"
        copied = self.run_program("skopeo", "--insecure-policy", "copy", "--dest-tls-verify=false", f"oci:{layout}:sig", f"docker://{self.registry.host}/{repository}:{tag}")
        self.assertEqual(copied.status, 0, copied.text)

    def new_key(self, name):
        key, public = self.scratch / f"{name}.key", self.scratch / f"{name}.pem"
        for words in (["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(key)], ["pkey", "-in", str(key), "-pubout", "-out", str(public)]):
            subprocess.run(["openssl", *words], check=True, stderr=subprocess.DEVNULL)
        public.chmod(0o600)
        return key, public

    @needs("skopeo")
    def test_unsigned_is_refused_where_a_signature_is_required(self):
        # CONFORMS("R-IMAGE-5")
        reference = self.push()
        key, public = self.new_key("good")
        other, _ = self.new_key("other")
        self.configure_owner(f'[images]\nsignatures = ["{self.registry.host}/team/*={public}"]\n')
        self.other_home()
        self.assertIn("not signed", self.image("pull", "-q", reference).err)
        self.sign("team/app", self.digest, other)
        self.assertIn("no signature by an accepted key", self.image("pull", "-q", reference).err)
        self.sign("team/app", self.digest, key)
        self.must("pull", "-q", reference)

    def test_number_of_signatures_that_are_requested_is_bounded(self):
        self.push()
        _, public = self.new_key("good")
        layers = [{"mediaType": "application/vnd.dev.cosign.simplesigning.v1+json", "digest": sha256(str(at).encode()), "size": 9,
                   "annotations": {"dev.cosignproject.cosign/signature": "AAAA"}} for at in range(200)]
        document = json.dumps({"schemaVersion": 2, "layers": layers}).encode()

        def signatures(handler, front):
            if handler.path.endswith(".sig"):
                return handler.reply(200, {}, document)
            return "/blobs/" in handler.path and handler.reply(404)

        front = self.front(signatures)
        self.configure_owner(f'[images]\nsignatures = ["{front.host}/team/*={public}"]\n')
        self.other_home()
        self.assertIn("no signature by an accepted key", self.image("pull", "-q", f"{front.host}/team/app:1").err)
        requested = [path for _, path, _ in front.requests if "/blobs/" in path]
        self.assertEqual(len(requested), 32)

    @needs("skopeo")
    def test_signature_of_another_image_is_refused(self):
        # CONFORMS("R-IMAGE-5")
        reference = self.push()
        key, public = self.new_key("good")
        self.configure_owner(f'[images]\nsignatures = ["{self.registry.host}/team/app={public}"]\n')
        self.sign("team/other", "sha256:" + "0" * 64, key)
        tag = self.digest.replace(":", "-") + ".sig"
        moved = self.run_program("skopeo", "--insecure-policy", "copy", "--src-tls-verify=false", "--dest-tls-verify=false",
                                 f"docker://{self.registry.host}/team/other:sha256-{'0' * 64}.sig", f"docker://{self.registry.host}/team/app:{tag}")
        self.assertEqual(moved.status, 0, moved.text)
        self.other_home()
        self.assertIn("no signature by an accepted key", self.image("pull", "-q", reference).err)


@needs("openssl")
class SignedName(ImageTest):
    """A registry that serves one image and its signature, whatever the repository is called."""

    def setUp(self):
        super().setUp()
        self.digest = oci_layout(self.scratch / "app", [tar_bytes([entry("a", b"x")])])
        self.blobs = {f"sha256:{path.name}": path.read_bytes() for path in (self.scratch / "app/blobs/sha256").iterdir()}
        self.signatures = b""
        front = Front("127.0.0.1:1", self.answer)
        self.addCleanup(front.close)
        self.host = front.host
        self.key, public = self.scratch / "key.pem", self.scratch / "public.pem"
        subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(self.key)], check=True, stderr=subprocess.DEVNULL)
        subprocess.run(["openssl", "pkey", "-in", str(self.key), "-pubout", "-out", str(public)], check=True, stderr=subprocess.DEVNULL)
        public.chmod(0o600)
        config = self.scratch / "config/caisson/config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f'[images]\nsignatures = ["{self.host}/team/*={public}"]\n')
        config.chmod(0o600)

    def answer(self, handler, front):
        name = handler.path.rsplit("/", 1)[-1]
        manifest = {"1": self.digest, self.digest: self.digest}.get(name)
        if name.endswith(".sig") and self.signatures:
            return handler.reply(200, {"Content-Type": "application/vnd.oci.image.manifest.v1+json"}, self.signatures)
        if manifest:
            return handler.reply(200, {"Content-Type": "application/vnd.oci.image.manifest.v1+json"}, self.blobs[manifest])
        if name in self.blobs:
            return handler.reply(200, {}, self.blobs[name])
        return handler.reply(200 if handler.path == "/v2/" else 404)

    def sign(self, name):
        identity = {} if name is None else {"identity": {"docker-reference": name}}
        payload = json.dumps({"critical": dict(identity, image={"docker-manifest-digest": self.digest}, type="cosign container image signature")}).encode()
        (self.scratch / "payload").write_bytes(payload)
        done = subprocess.run(["openssl", "dgst", "-sha256", "-sign", str(self.key), str(self.scratch / "payload")], check=True, stdout=subprocess.PIPE)
        layer = {"mediaType": "application/vnd.dev.cosign.simplesigning.v1+json", "digest": sha256(payload), "size": len(payload),
                 "annotations": {"dev.cosignproject.cosign/signature": base64.b64encode(done.stdout).decode()}}
        self.blobs[sha256(payload)] = payload
        self.signatures = json.dumps({"schemaVersion": 2, "layers": [layer]}).encode()

    def test_must_be_the_repository(self):
        # CONFORMS("R-IMAGE-5")
        reference = f"{self.host}/team/prod:1"
        for name in (f"{self.host}/team/dev", f"{self.host}/team/prod2", f"{self.host}/team/prod:2", "elsewhere.example/team/prod", "", None):
            self.sign(name)
            refused = self.image("pull", "-q", reference)
            self.assertEqual(refused.status, 125, refused.text)
            self.assertIn(f"is signed as {name or 'no name'}, not under this name", refused.err)
        for number, name in enumerate((f"{self.host}/team/prod", f"{self.host}/team/prod:1", f"{self.host}/team/prod@{self.digest}")):
            self.environment["CAISSON_HOME"] = str(self.scratch / f"home{number}")
            self.sign(name)
            self.must("pull", "-q", reference)

    def test_required_later_is_checked_where_the_image_is_used(self):
        # CONFORMS("R-IMAGE-5")
        reference, config = f"{self.host}/team/prod:1", self.scratch / "config/caisson/config.toml"
        rule = config.read_text()
        config.write_text("")
        self.must("pull", "-q", reference)
        self.must("tag", reference, "localhost/other")
        (self.scratch / "Containerfile").write_text(f"FROM {reference}\n")
        uses = (("plan", "--image", reference, "--", "true"), ("run", "--image", reference, "--", "true"),
                ("session", "create", "--image", reference), ("image", "build", "-q", "-t", "made", str(self.scratch)))
        config.write_text(rule)
        for use in uses:
            refused = self.run_program(CAISSON, *use)
            self.assertEqual(refused.status, 125, (use, refused.text))
            self.assertIn("requires a signature for this name", refused.err, use)
        self.sign(f"{self.host}/team/prod")
        self.must("pull", "-q", reference)
        for use in (uses[0], uses[-1], ("plan", "--image", "localhost/other", "--", "true")):
            allowed = self.run_program(CAISSON, *use)
            self.assertEqual(allowed.status, 0, (use, allowed.text))
        # What it signs is not signed under another name, even if that was given by `tag`.
        config.write_text("")
        self.must("tag", reference, f"{self.host}/team/stage:1")
        config.write_text(rule)
        refused = self.run_program(CAISSON, "plan", "--image", f"{self.host}/team/stage:1", "--", "true")
        self.assertIn("requires a signature for this name", refused.err)
