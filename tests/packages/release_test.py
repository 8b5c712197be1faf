#!/usr/bin/env python3
"""release_test.py [NAME...]: tests common to all packages: size, version, licences, bill of materials, signature,
reproducibility.

Reads dist/ and the build directory after `make dist`. `reproducible` builds everything again in another directory,
without a compiler cache; CAISSON_QUICK=1 skips it.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIST = pathlib.Path(os.environ.get("CAISSON_DIST_OUTPUT", ROOT / "dist"))
# With tests/vm/toolchain.sh the packages are for another architecture.
CROSS = os.environ.get("CAISSON_CROSS")
BUILD = pathlib.Path(os.environ.get("CAISSON_DIST_BUILD", ROOT / (f"build-dist-{CROSS}" if CROSS else "build-dist")))
DATABASE = os.environ.get("CAISSON_SYSROOT", "") + "/var/lib/dpkg"
NAMES = {"aarch64": r"aarch64|arm64", "x86_64": r"x86_64|amd64|linux-x64"}
MACHINE = next(machine for machine, names in NAMES.items() if re.fullmatch(names, CROSS or os.uname().machine))
OTHERS = re.compile("|".join(names for machine, names in NAMES.items() if machine != MACHINE))
VERSION = re.search(r"^project\(caisson VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
NAME = f"caisson-{VERSION}-linux-{MACHINE}"
TARBALL = DIST / f"{NAME}.tar.gz"
KEY = DIST / "caisson-signing.pub"
MAX_LAUNCHER = 4_000_000
PROGRAMS = ["bin/caisson"] + [f"libexec/caisson/caisson-{name}" for name in ("broker", "commands", "image", "mcp", "server", "unpack")]


class Skip(Exception):
    pass


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


class Installation:
    """Unpacks the tarball in a temporary directory."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="caisson-release-")
        with tarfile.open(TARBALL) as archive:
            archive.extractall(self.folder.name, filter="tar") if hasattr(tarfile, "tar_filter") else archive.extractall(
                self.folder.name)
        self.prefix = pathlib.Path(self.folder.name) / NAME
        self.home = pathlib.Path(self.folder.name) / "home"
        self.home.mkdir()
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def caisson(self, *arguments):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        return run(self.prefix / "bin/caisson", *arguments, env=environment)

    def verify(self, *arguments):
        """Returns the exit status and the JSON of `caisson self verify`."""
        done = self.caisson("self", "verify", "--json", *arguments)
        expect(done.stdout.startswith("{"), f"no JSON: {done.returncode} {done.stdout}{done.stderr}")
        return done.returncode, json.loads(done.stdout)


def size(install):
    launcher = (install.prefix / "bin/caisson").stat().st_size
    expect(launcher <= MAX_LAUNCHER, f"the launcher has {launcher} bytes, more than {MAX_LAUNCHER}")
    print(f"  launcher: {launcher} bytes")


def contents(install):
    for program in PROGRAMS:
        path = install.prefix / program
        expect(os.access(path, os.X_OK), f"{program} is not executable")
        sections = run("readelf", "--file-header", "--section-headers", "--wide", path).stdout
        expect(re.search({"aarch64": "Machine: +AArch64", "x86_64": "Machine: .*X86-64"}[MACHINE], sections), f"{program}: not for {MACHINE}")
        expect(".symtab" not in sections, f"{program} is not stripped")
    for program in PROGRAMS:
        if program.endswith(("image", "unpack")):
            continue
        expect("NEEDED" not in run("readelf", "--dynamic", path := install.prefix / program).stdout, f"{path} is not static")
    with tarfile.open(TARBALL) as archive:
        members = archive.getmembers()
    expect([member.name for member in members] == sorted((member.name for member in members), key=lambda name: name.split("/")),
           "the names in the tarball are not sorted")
    expect({(member.uid, member.gid) for member in members} == {(0, 0)}, "an owner is not 0:0")
    expect(len({member.mtime for member in members}) == 1, "the times differ")
    expect(not any(member.mode & 0o7022 for member in members), "a file is setuid or writable by others")


def version(install):
    head = run("sh", ROOT / "packaging/dist/commit.sh", "id").stdout.strip()
    shown = json.loads(install.caisson("version", "--json").stdout)
    expect(shown["version"] == VERSION and shown["static"] is True, f"{shown}")
    expect(shown["commit"] == head, f"commit {shown['commit']}, expected {head}; is dist/ up to date?")
    expect(shown["architecture"] == MACHINE and shown["compiler"], f"{shown}")
    text = install.caisson("version").stdout
    expect(text.startswith(f"caisson {VERSION}\n") and head in text, text)
    expect(install.caisson("--version").stdout == f"caisson {VERSION}\n", "--version prints more than its line")


def commit_without_git(_):
    """A source tree from `git archive` has its commit; without git and the archive's file the commit is unknown."""
    with tempfile.TemporaryDirectory() as folder:
        archive = run("git", "-C", ROOT, "archive", "--output", f"{folder}/a.tar", "HEAD", "packaging/dist")
        expect(archive.returncode == 0, archive.stderr)
        run("tar", "-xf", f"{folder}/a.tar", "-C", folder)
        script = f"{folder}/packaging/dist/commit.sh"
        head = run("git", "-C", ROOT, "rev-parse", "HEAD").stdout
        expect(run("sh", script, "id").stdout == head, "the archive has no commit")
        expect(run("sh", script, "time").stdout == run("git", "-C", ROOT, "log", "-1", "--format=%ct").stdout, "time")
        shutil.copy(ROOT / "packaging/dist/commit.txt", f"{folder}/packaging/dist/commit.txt")
        expect(run("sh", script, "id").stdout == "unknown\n", "a commit was reported for a tree without one")


def linked_packages(program):
    """Returns the Debian packages whose archives are in the link map of a program, read directly from the map."""
    archives = set(re.findall(r"^(/\S+?\.a)\(", (BUILD / f"{program}.map").read_text(errors="replace"), re.MULTILINE))
    found = run("dpkg-query", f"--admindir={DATABASE}", "--search", *sorted({os.path.realpath(path) for path in archives})).stdout
    return {line.split(":")[0] for line in found.splitlines()}, archives


def bill_of_materials(install):
    document = json.loads((install.prefix / "share/caisson/sbom.spdx.json").read_text())
    expect(document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0", "not SPDX 2.3")
    expect(document["SPDXID"] == "SPDXRef-DOCUMENT" and document["documentNamespace"].startswith("https://"), "header")
    expect(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", document["creationInfo"]["created"]), "time")
    ids = [entry["SPDXID"] for entry in document["packages"] + document["files"]] + ["SPDXRef-DOCUMENT"]
    expect(len(ids) == len(set(ids)) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", name) for name in ids), "ids")
    for package in document["packages"]:
        for field in ("name", "versionInfo", "downloadLocation", "licenseDeclared", "licenseConcluded", "copyrightText"):
            expect(package.get(field), f"{package['name']} has no {field}")
        expect(package["filesAnalyzed"] is False, package["name"])
    for relation in document["relationships"]:
        expect(relation["spdxElementId"] in ids and relation["relatedSpdxElement"] in ids, f"{relation}")
    for entry in document["files"]:
        content = (install.prefix / entry["fileName"]).read_bytes()
        sums = {one["algorithm"]: one["checksumValue"] for one in entry["checksums"]}
        expect(sums["SHA256"] == hashlib.sha256(content).hexdigest(), f"checksum of {entry['fileName']}")
        expect(sums["SHA1"] == hashlib.sha1(content).hexdigest(), f"checksum of {entry['fileName']}")
    expect({entry["fileName"] for entry in document["files"]} == {f"./{program}" for program in PROGRAMS}, "programs")
    licences = {package["name"]: package["licenseDeclared"] for package in document["packages"]}
    for program in PROGRAMS:
        name = os.path.basename(program)
        static = {relation["relatedSpdxElement"] for relation in document["relationships"]
                  if relation["spdxElementId"] == f"SPDXRef-File-{name}" and relation["relationshipType"] == "STATIC_LINK"}
        packages, archives = linked_packages(name)
        for package in packages:
            expect(f"SPDXRef-Package-{re.sub(r'[^A-Za-z0-9.-]', '-', package)}" in static,
                   f"{name} contains {package}, which is missing in the bill of materials")
            expect(licences[package] != "NOASSERTION", f"{package} has no licence")
        expect(archives or name in ("caisson-image", "caisson-unpack"), f"the link map of {name} contains no archive")
    for package in ("libtomlplusplus-dev", "nlohmann-json3-dev", "libre2-dev", "libyaml-dev", "libssl-dev"):
        expect(package in licences, f"{package} is not named")


def licences(install):
    notice = (install.prefix / "share/doc/caisson/NOTICE").read_text()
    shown = install.caisson("version", "--licenses")
    expect(shown.returncode == 0 and shown.stdout == notice, "version --licenses does not print NOTICE")
    document = json.loads((install.prefix / "share/caisson/sbom.spdx.json").read_text())
    static = {relation["relatedSpdxElement"] for relation in document["relationships"]
              if relation["relationshipType"] == "STATIC_LINK"}
    listed = set(re.findall(r"^(\S+) \S+: ", notice.split("=" * 100)[0], re.MULTILINE))
    for package in document["packages"]:
        if package["SPDXID"] in static:
            source = package["sourceInfo"].removeprefix("source package ")
            expect(source in listed, f"NOTICE does not list {source}")
            expect(f"\n{'=' * 100}\n{source} " in notice, f"NOTICE has no text of {source}")
    for text in ("GNU LESSER GENERAL PUBLIC LICENSE", "Apache License", "GCC RUNTIME LIBRARY EXCEPTION", "Boost Software License"):
        expect(text.lower() in notice.lower(), f"NOTICE has no {text}")
    lone = pathlib.Path(install.folder.name) / "lone"
    lone.mkdir()
    for program in ("bin/caisson", "libexec/caisson/caisson-commands"):
        shutil.copy(install.prefix / program, lone)
    if not pathlib.Path("/usr/share/doc/caisson/NOTICE").exists():
        done = run(lone / "caisson", "version", "--licenses")
        expect(done.returncode == 125 and "share/doc/caisson/NOTICE" in done.stderr, f"{done}")


def openssl_verifies(file, key=KEY):
    return run("openssl", "pkeyutl", "-verify", "-pubin", "-inkey", key, "-rawin", "-in", file, "-sigfile", f"{file}.sig").returncode == 0


def checksums(_):
    expect(openssl_verifies(DIST / "SHA256SUMS"), "the signature of SHA256SUMS is not valid")
    done = run("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS", cwd=DIST)
    expect(done.returncode == 0, done.stdout + done.stderr)
    listed = {line.split("  ", 1)[1] for line in (DIST / "SHA256SUMS").read_text().splitlines()}
    there = {str(path.relative_to(DIST)) for path in DIST.rglob("*") if path.is_file()} - {"SHA256SUMS", "SHA256SUMS.sig"}
    expect(listed == there, f"listed and present differ: {listed ^ there}")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("SHA256SUMS", "SHA256SUMS.sig"):
            shutil.copy(DIST / name, folder)
        changed = pathlib.Path(folder) / "SHA256SUMS"
        changed.write_bytes(changed.read_bytes().replace(b"0", b"1", 1))
        expect(not openssl_verifies(changed), "a changed byte keeps the signature valid")


def self_verify_accepts(install):
    status, report = install.verify()
    expect(status == 0 and report["passed"] and report["manifests"][0]["signature"] == "not_checked", f"{report}")
    done = install.caisson("self", "verify")
    expect("signature of share/caisson/MANIFEST: not checked: name a key with --key FILE" in done.stdout, done.stdout)
    status, report = install.verify("--key", KEY)
    expect(status == 0 and report["manifests"][0]["signature"] == "valid" and report["manifests"][0]["key"] == str(KEY), f"{report}")
    count = sum(1 for path in install.prefix.rglob("*") if path.is_file() and not path.is_symlink())
    expect(report["manifests"][0]["files"] == count - 2, f"{count} files, {report['manifests'][0]['files']} listed")
    configuration = install.home / ".config/caisson"
    configuration.mkdir(parents=True)
    shutil.copy(KEY, configuration / "release.pub")
    status, report = install.verify()
    expect(status == 0 and report["manifests"][0]["key"] == str(configuration / "release.pub"), f"{report}")
    done = run("sha256sum", "--check", "--strict", "--quiet", "share/caisson/MANIFEST", cwd=install.prefix)
    expect(done.returncode == 0, done.stdout)


def self_verify_finds_changes(install):
    changed, missing, linked = (install.prefix / name for name in
                                ("libexec/caisson/caisson-broker", "share/man/man1/caisson.1", "share/caisson/policy.schema.json"))
    content = bytearray(changed.read_bytes())
    content[len(content) // 2] ^= 1
    changed.write_bytes(content)
    missing.unlink()
    copy = install.home / "schema"
    shutil.move(linked, copy)
    linked.symlink_to(copy)
    status, report = install.verify("--key", KEY)
    expect(status == 1 and not report["passed"], f"{status} {report}")
    expect(sorted(report["changed"]) == ["libexec/caisson/caisson-broker", "share/caisson/policy.schema.json"], f"{report['changed']}")
    expect(report["missing"] == ["share/man/man1/caisson.1"], f"{report['missing']}")


def self_verify_finds_added_programs(install):
    planted = install.prefix / "bin/caisson-server"
    planted.write_text("#!/bin/sh\necho planted\n")
    planted.chmod(0o755)
    done = install.caisson("serve", "--socket", "relative/path")
    expect(done.returncode != 0 and "planted" not in done.stdout, f"a program beside caisson was started: {done}")
    shutil.copy(planted, install.prefix / "bin/caisson-broker")
    items = json.loads(install.caisson("doctor", "--json").stdout)["items"]
    broker = next(item for item in items if item["name"] == "credential-broker")
    expect("/libexec/caisson/" in broker["found"], f"{broker}")
    shutil.copy(planted, install.prefix / "libexec/caisson/caisson-other")
    status, report = install.verify("--key", KEY)
    expect(status == 1 and report["added"] == ["libexec/caisson/caisson-other"], f"{report}")


def self_verify_finds_a_changed_manifest(install):
    """A change of a program and its line in the manifest is detected only with a key."""
    program, manifest = install.prefix / "libexec/caisson/caisson-broker", install.prefix / "share/caisson/MANIFEST"
    before = hashlib.sha256(program.read_bytes()).hexdigest()
    program.write_bytes(program.read_bytes() + b"\0")
    manifest.write_text(manifest.read_text().replace(before, hashlib.sha256(program.read_bytes()).hexdigest()))
    status, report = install.verify()
    expect(status == 0 and report["manifests"][0]["signature"] == "not_checked", f"{report}")
    status, report = install.verify("--key", KEY)
    expect(status == 1 and report["manifests"][0]["signature"] == "invalid" and report["changed"] == [], f"{report}")
    (install.prefix / "share/caisson/MANIFEST.sig").unlink()
    status, report = install.verify("--key", KEY)
    expect(status == 1 and report["manifests"][0]["signature"] == "missing", f"{report}")


def self_verify_refuses_other_keys(install):
    other = install.home / "other.pub"
    run("openssl", "genpkey", "-algorithm", "ed25519", "-out", install.home / "other.key")
    run("openssl", "pkey", "-in", install.home / "other.key", "-pubout", "-out", other)
    status, report = install.verify("--key", other)
    expect(status == 1 and report["manifests"][0]["signature"] == "invalid", f"{report}")
    (install.home / "text").write_text("no key\n")
    done = install.caisson("self", "verify", "--key", install.home / "text")
    expect(done.returncode == 125 and "not a public key" in done.stderr, done.stderr)
    (install.prefix / "share/caisson/MANIFEST").unlink()
    done = install.caisson("self", "verify")
    expect(done.returncode == 125 and "not installed from a package" in done.stderr, done.stderr)


def reproducible(_):
    if os.environ.get("CAISSON_QUICK"):
        raise Skip("CAISSON_QUICK is set")
    with tempfile.TemporaryDirectory(prefix="caisson-second-build-") as folder:
        tree = pathlib.Path(folder) / "another" / "source directory".replace(" ", "-")
        tree.mkdir(parents=True)
        names = run("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout
        packed = subprocess.run(["tar", "-C", ROOT, "--null", "--files-from=-", "--create"], input=names.encode(), capture_output=True)
        subprocess.run(["tar", "-x", "-C", tree], input=packed.stdout, check=True)
        shutil.copytree(ROOT / ".git", tree / ".git", symlinks=True)
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("CAISSON_DIST", "CMAKE_C", "CCACHE")) and name != "SOURCE_DATE_EPOCH"}
        artefacts = sorted({"tarball"} | {artefact for artefact, pattern in (
            ("deb", "*.deb"), ("npm", "*.tgz"), ("wheel", "*.whl"), ("image", "*image*.tar*")) if any(DIST.rglob(pattern))})
        done = run("sh", tree / "scripts/dist.sh", *artefacts, env=environment | {"CCACHE_DISABLE": "1"})
        expect(done.returncode == 0, done.stderr[-3000:])
        listed, again = (set((made / "SHA256SUMS").read_text().splitlines()) for made in (DIST, tree / "dist"))
        differing = sorted({line.split("  ")[1] for line in listed ^ again if not OTHERS.search(line)})
        if differing:
            with Installation() as first, tarfile.open(tree / "dist" / f"{NAME}.tar.gz") as archive:
                for member in archive.getmembers():
                    path = first.prefix.parent / member.name
                    if member.isfile() and path.read_bytes() != archive.extractfile(member).read():
                        print(f"  differs in the tarball: {member.name}")
        expect(not differing, f"two builds differ: {differing}")


TESTS = [size, contents, version, commit_without_git, bill_of_materials, licences, checksums, self_verify_accepts,
         self_verify_finds_changes, self_verify_finds_added_programs, self_verify_finds_a_changed_manifest,
         self_verify_refuses_other_keys, reproducible]


def main(names):
    passed = failed = skipped = 0
    for test in TESTS:
        if names and test.__name__ not in names:
            continue
        try:
            with Installation() as install:
                test(install)
        except Skip as reason:
            print(f"skipped {test.__name__}: {reason}")
            skipped += 1
        except Exception as problem:  # a broken package must not hide other failures
            print(f"FAILED {test.__name__}: {type(problem).__name__}: {problem}")
            failed += 1
        else:
            print(f"passed {test.__name__}")
            passed += 1
        sys.stdout.flush()
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
