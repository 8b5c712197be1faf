"""image build and commit: Containerfiles, stages, the cache, sandboxes of RUN."""
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time

from world import CAISSON, ImageTest, entry, needs, oci_layout, sha256, tar_bytes

TOOLS = "sh cat echo ls mkdir rm mv cp chmod chown id env touch ln pwd wget sleep".split()


@needs("busybox", "ldd")
class BuildTest(ImageTest):
    def setUp(self):
        super().setUp()
        root = self.scratch / "busybox"
        (root / "bin").mkdir(parents=True)
        (root / "etc").mkdir()
        (root / "usr/lib").mkdir(parents=True)
        (root / "lib").symlink_to("usr/lib")
        program = shutil.which("busybox")
        shutil.copy(program, root / "bin/busybox")
        for name in TOOLS:
            (root / "bin" / name).symlink_to("busybox")
        listed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout.decode()
        for path in re.findall(r"(/\S+) \(0x", listed):
            target = root / path.lstrip("/").replace("lib/", "usr/lib/", 1) if path.startswith("/lib/") else root / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        (root / "etc/motd").write_text("base\n")
        (root / "etc/gone").write_text("gone\n")
        self.must("import", "-q", root, "busybox:1")
        self.context = self.scratch / "context"
        self.context.mkdir()

    def write(self, name, text):
        path = self.context / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def build(self, text, *words, name="app:1"):
        self.write("Containerfile", text)
        return self.image("build", "-q", "-t", name, *words, self.context)

    def built(self, text, *words, name="app:1"):
        result = self.build(text, *words, name=name)
        self.assertEqual(result.status, 0, result.text)
        return result

    def merged(self, name="app:1"):
        """Returns the merged view of the layers, by path: the content of files, the target of links."""
        shown = {}
        for root in self.roots(name):
            for base, directories, files in os.walk(root):
                where = os.path.relpath(base, root)
                opaque = "user.overlay.opaque" in os.listxattr(base)
                if opaque:
                    shown = {path: data for path, data in shown.items() if not path.startswith(where + "/")}
                for one in directories + files:
                    path = os.path.normpath(os.path.join(where, one))
                    whole = os.path.join(base, one)
                    if os.path.islink(whole):
                        shown[path] = "-> " + os.readlink(whole)
                    elif os.path.isfile(whole):
                        shown[path] = open(whole, "rb").read()
                    elif os.path.isdir(whole):
                        shown.setdefault(path, None)
                    else:
                        shown = {other: data for other, data in shown.items() if other != path and not other.startswith(path + "/")}
        return shown


class Build(BuildTest):
    def test_instructions_change_files_and_configuration(self):
        # CONFORMS("R-IMAGE-8")
        self.write("app/main.txt", "main\n")
        self.write("app/secret.key", "key\n")
        self.write(".dockerignore", "**/*.key\n# comment\n")
        self.built('ARG BASE=busybox:1\nFROM $BASE\nARG VERSION=1\nENV NAME=value OTHER="two words"\nLABEL a=b\n'
                   "WORKDIR /srv/app\nCOPY app/ ./\nCOPY app/main.txt /lib/copied.txt\n"
                   "RUN echo $VERSION-$NAME-$OTHER > made.txt && \\\n    rm /etc/gone && mkdir /etc/new\n"
                   'USER 1000\nEXPOSE 80\nENTRYPOINT ["/bin/sh"]\nCMD ["-c", "true"]\n', "--build-arg", "VERSION=7")
        files = self.merged()
        self.assertEqual(files["srv/app/main.txt"], b"main\n")
        self.assertNotIn("srv/app/secret.key", files)
        self.assertEqual(files["usr/lib/copied.txt"], b"main\n")
        self.assertEqual(files["lib"], "-> usr/lib")
        self.assertEqual(files["srv/app/made.txt"], b"7-value-two words\n")
        self.assertNotIn("etc/gone", files)
        self.assertIn("etc/new", files)
        config = self.inspect("app:1")["Config"]
        self.assertEqual(config["Env"], ["NAME=value", "OTHER=two words"])
        self.assertEqual((config["WorkingDir"], config["User"], config["Entrypoint"], config["Cmd"]), ("/srv/app", "1000", ["/bin/sh"], ["-c", "true"]))
        self.assertEqual((config["Labels"], config["ExposedPorts"]), ({"a": "b"}, {"80/tcp": {}}))
        self.assertEqual(json.loads(files["usr/share/sbom/image.spdx.json"])["spdxVersion"], "SPDX-2.3")
        self.assert_store_clean()

    def test_stages_and_copy_from(self):
        self.built("FROM busybox:1 AS builder\nRUN mkdir /out && echo built > /out/result && ln -s result /out/link\n"
                   "FROM scratch\nCOPY --from=builder /out /opt\nCOPY --from=busybox:1 --chmod=600 /etc/motd /opt/motd\n")
        files = self.merged()
        self.assertEqual((files["opt/result"], files["opt/link"], files["opt/motd"]), (b"built\n", "-> result", b"base\n"))
        self.assertNotIn("bin/sh", files)
        self.built("FROM busybox:1 AS one\nRUN touch /one\nFROM busybox:1 AS two\nRUN false\n", "--target", "one", name="app:2")
        self.assertIn("one", self.merged("app:2"))

    def test_images_of_a_running_build_are_not_removed(self):
        self.must("import", "-q", self.write_tar("other.tar", [entry("data", b"other\n")]), "other:1")
        self.write("Containerfile", "FROM other:1 AS one\nFROM busybox:1\nRUN sleep 3\nCOPY --from=one /data /data\n")
        building = subprocess.Popen([CAISSON, "image", "build", "-q", "-t", "app:1", str(self.context)], env=self.environment,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while "caisson-build-cache" not in (self.store / "index.json").read_text() and time.monotonic() < deadline:
            time.sleep(0.05)  # until RUN begins
        removed = self.image("remove", "other:1")  # waits for the build
        error = building.communicate(timeout=120)[1].decode()
        self.assertEqual(building.returncode, 0, error)
        self.assertEqual(self.merged()["data"], b"other\n")
        self.assertIn(removed.status, (0, 125), removed.text)
        self.assert_store_clean()

    def test_image_of_too_many_layers_is_refused_before_it_is_stored(self):
        layer = tar_bytes([entry("same", b"x")])
        oci_layout(self.scratch / "many", [layer] * 256, name="1")
        self.must("import", "-q", self.scratch / "many")
        self.write("new", "new")
        before = (self.store / "index.json").read_text()
        refused = self.build("FROM many:1\nCOPY new /new\n")
        self.assertEqual(refused.status, 125, refused.text)
        self.assertIn("COPY new /new: the image would have more than 256 layers", refused.err)
        self.assertEqual((self.store / "index.json").read_text(), before)
        self.must("remove", "many:1")
        self.assert_store_clean()

    def test_run_is_cached_by_content(self):
        self.environment["SOURCE_DATE_EPOCH"] = "1700000000"
        text = "FROM busybox:1\nCOPY input /input\nRUN cat /input > /output; cat /proc/sys/kernel/random/uuid > /id\n"
        self.write("input", "1")
        self.built(text)
        first = self.merged()["id"]
        self.built(text)
        self.assertEqual(self.merged()["id"], first)
        self.write("input", "2")
        self.built(text)
        second = self.merged()
        self.assertNotEqual(second["id"], first)
        self.assertEqual(second["output"], b"2")
        self.built(text, "--force")
        self.assertNotEqual(self.merged()["id"], second["id"])
        self.assertNotIn("build-cache", self.must("list").out)
        self.assertEqual(self.must("list").out.count("\n<none>"), 2, "only the images that lost their name")
        self.must("prune")
        self.assert_store_clean()

    def test_command_whose_words_contain_a_variable_has_another_result(self):
        self.built('FROM busybox:1\nRUN ["/bin/sh", "-c", "echo A=$A > /f", "A=1"]\n')
        self.assertEqual(self.merged()["f"], b"A=\n")
        self.built("FROM busybox:1\nARG A=1\nRUN echo A=$A > /f\n")
        self.assertEqual(self.merged()["f"], b"A=1\n")

    def test_cache_is_of_blobs_and_not_of_what_a_decoder_reported(self):
        with tarfile.open(self.scratch / "root.tar", "w") as archive:
            archive.add(self.scratch / "busybox", arcname=".")
        plain = (self.scratch / "root.tar").read_bytes()
        oci_layout(self.scratch / "plain", [plain], name="1")
        oci_layout(self.scratch / "zipped", [gzip.compress(plain)], name="1", diff_ids=[sha256(plain)],
                   types={0: "application/vnd.oci.image.layer.v1.tar+gzip"})
        ids = set()
        for name in ("plain", "zipped"):
            self.must("import", "-q", self.scratch / name)
            self.built(f"FROM {name}:1\nRUN cat /proc/sys/kernel/random/uuid > /id\n")
            ids.add(self.merged()["id"])
        self.assertEqual(len(ids), 2, "the blobs differ, so the result of one is not that of the other")

    def test_equal_inputs_give_equal_images(self):
        self.environment["SOURCE_DATE_EPOCH"] = "1700000000"
        text = "FROM busybox:1\nENV A=b\nCOPY input /input\nRUN echo made > /made\n"
        self.write("input", "1")
        self.built(text)
        first = self.inspect("app:1")["Digest"]
        self.must("prune")
        self.built(text, "--no-cache")
        self.assertEqual(self.inspect("app:1")["Digest"], first)

    def test_errors_are_reported_with_their_cause(self):
        for text, expected in (("RUN true\n", "first instruction must be FROM"), ("FROM busybox:1\nVOLUME /x\n", "unsupported instruction VOLUME"),
                               ("FROM busybox:1\nRUN exit 3\n", "exited with status 3"), ("FROM busybox:1\nCOPY ../x /x\n", "out of the build context"),
                               ("FROM busybox:1\nCOPY missing /x\n", "no such file"), ("FROM busybox:1\nADD https://example.org/x /x\n", "not supported"),
                               ("FROM busybox:1\nRUN --mount=type=secret true\n", "not supported"), ("FROM scratch\nRUN true\n", "empty")):
            result = self.build(text)
            self.assertEqual(result.status, 125, text)
            self.assertIn(expected, result.err)

    def test_links_of_the_context_are_not_followed(self):
        # CONFORMS("R-IMAGE-8")
        outside = self.scratch / "outside"
        outside.mkdir()
        (outside / "private").write_text("private")
        (self.context / "link").symlink_to(outside / "private")
        (self.context / "folder").symlink_to(outside)
        self.built("FROM busybox:1\nCOPY link /copied\n")
        self.assertTrue(self.merged()["copied"].startswith("-> "))
        self.assertEqual(self.build("FROM busybox:1\nCOPY folder/private /copied\n").status, 125)

    def test_variables_that_double_are_refused(self):
        # CONFORMS("R-IMAGE-8")
        for line in ("ENV A=$A$A", "ARG A=$A$A", "LABEL A=$B$B\nENV B=$B$B", "ENV A=${A:-x}${A:+$A}"):
            text = "FROM scratch\nENV B=12345678\nENV A=12345678\n" if line.startswith(("ENV", "LABEL")) else "FROM scratch\nARG A=12345678\n"
            result = self.build(text + (line + "\n") * 22)
            self.assertEqual(result.status, 125, line)
            self.assertIn("expand to more than 4 MiB", result.err)
        self.built("FROM scratch\nARG V=1\nENV A=${V}2 B=\\$A C=${N:-d}${V:+$V}$\nLABEL l=$A-$B\n")
        config = self.inspect("app:1")["Config"]
        self.assertEqual((config["Env"], config["Labels"]), (["A=12", "B=$A", "C=d1$"], {"l": "12-$A"}))

    def test_list_of_packages_is_bounded(self):
        database = self.scratch / "busybox/lib/apk/db"
        database.mkdir(parents=True)
        (database / "installed").write_text("P:a\nV:1\n\n" * 150_000)
        self.must("import", "-q", self.scratch / "busybox", "apk:1")
        self.built("FROM apk:1\n")
        self.assertEqual(len(json.loads(self.merged()["usr/share/sbom/image.spdx.json"])["packages"]), 100_000)

    def test_deep_directories_of_a_command_take_little_memory(self):
        # CONFORMS("R-IMAGE-8")
        self.write("Containerfile", "FROM busybox:1\nRUN n=$(echo " + "x" * 250 + "); d=.; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do d=$d/$n; done; "
                   "for i in 1 2 3 4 5 6 7 8; do mkdir -p $d && cd -P $d; done; "
                   "N=''; for a in 0 1 2 3 4 5 6 7 8 9; do for b in 0 1 2 3 4 5 6 7 8 9; do N=\"$N $a$b\"; done; done; "
                   "for p in $N; do mkdir $(for q in $N; do echo $p$q; done); done\n")
        measure = "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:]); " \
                  "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(done.returncode)"
        result = self.run_program(sys.executable, "-c", measure, CAISSON, "image", "build", "-q", self.context)
        self.assertEqual(result.status, 125, result.text)
        self.assertLess(int(result.out.split("peak ")[1]) // 1024, 200, "MiB of memory")
        self.assertIn("path is too long", result.err)

    def test_run_sees_neither_host_nor_network(self):
        # CONFORMS("R-IMAGE-8")
        marker = self.scratch / "host-file"
        marker.write_text("host")
        self.built(f"FROM busybox:1\nRUN if cat {marker}; then exit 1; fi; if wget -T 3 http://127.0.0.1:1/; then exit 1; fi; id > /id\n")
        self.assertIn(b"uid=0", self.merged()["id"])

    def test_closed_files_of_other_ids_are_part_of_the_image(self):
        # CONFORMS("R-IMAGE-8")
        self.built("FROM busybox:1\nRUN mkdir -p /closed/deep && echo x >/closed/deep/f && chown -R 33:33 /closed && chmod -R go= /closed\n"
                   "RUN cat /closed/deep/f\n")
        self.assertEqual(self.merged()["closed/deep/f"], b"x\n")
        self.assert_store_clean()
        self.assertEqual(list((self.home / "stores").iterdir()), [], "the sessions of RUN")


class Commit(BuildTest):
    def session(self):
        """Returns a session with the image as root, and a function that runs a script in it."""
        policy = self.scratch / "p.toml"
        policy.write_text('extends = "dev"\nfilesystem.root = "busybox:1"\nisolation.user = "root"\nfilesystem.workspace.mode = "none"\n')
        created = self.run_program(CAISSON, "session", "create", "--policy", policy)
        self.assertEqual(created.status, 0, created.text)
        session = created.out.strip()
        self.addCleanup(lambda: self.run_program(CAISSON, "session", "destroy", session))

        def run(script):
            done = self.run_program(CAISSON, "session", "exec", session, "--", "/bin/sh", "-c", script)
            self.assertEqual(done.status, 0, done.text)
            return done.out
        return session, run

    def test_layers_of_checkpoints_are_part_of_the_image(self):
        # CONFORMS("R-IMAGE-8")
        session, run = self.session()
        run("echo 1 >/one; rm /etc/gone; mkdir -p /closed; echo c >/closed/f; chown -R 5 /closed; chmod 700 /closed")
        done = self.run_program(CAISSON, "session", "checkpoint", session, "c")
        self.assertEqual(done.status, 0, done.text)
        run("echo 2 >/two; echo changed >/one")
        self.must("commit", session, "committed:1")
        files = self.merged("committed:1")
        self.assertEqual((files["one"], files["two"], files["closed/f"]), (b"changed\n", b"2\n", b"c\n"))
        self.assertNotIn("etc/gone", files)
        self.assertEqual(run("cat /one /closed/f"), "changed\nc\n", "the session can be used further")
        self.assert_store_clean()

    def test_changes_of_a_session_become_a_layer(self):
        # CONFORMS("R-IMAGE-8")
        session, run = self.session()
        run("echo new > /etc/new; rm /etc/gone")
        self.must("commit", session, "committed:1")
        files = self.merged("committed:1")
        self.assertEqual(files["etc/new"], b"new\n")
        self.assertNotIn("etc/gone", files)
        self.assertEqual(len(self.roots("committed:1")), 2)
        run = self.run_program(CAISSON, "run", "--image", "committed:1", "--", "/bin/cat", "/etc/new")
        self.assertEqual(run.out, "new\n", run.text)
        self.assert_store_clean()
