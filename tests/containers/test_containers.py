#!/usr/bin/env python3
"""Runs caisson in containers of several engines and compares the results with expected.toml.

  test_containers.py DIRECTORY-WITH-CAISSON [--image TAR] [--rows NAME,...] [--probes NAME,...] [--write] [--report FILE]

Needs root. Exits 1 if a result differs, if doctor and run disagree, or if something is left on the machine.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import tomllib
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import engines  # noqa: E402
import page  # noqa: E402
import rows  # noqa: E402
import world  # noqa: E402

EXPECTED = HERE / "expected.toml"
SOURCE = HERE.parents[1]
PROFILES = SOURCE / "packaging" / "seccomp"
CONTAINERFILE = SOURCE / "packaging" / "container" / "Containerfile"
PROGRAMS = ("caisson", "caisson-mcp", "caisson-broker", "caisson-server")
PODMAN_PROFILE = "/usr/share/containers/seccomp.json"
TESTER = "caisson-tester"
PAGE = "documentation"


class Engines:
    """The engines of the rows, each started once."""

    def __init__(self, place, image):
        self.place, self.image, self.started = place, image, {}

    def directory(self, name):
        path = self.place / name
        path.mkdir(mode=0o755)
        return path

    def get(self, name):
        if name not in self.started:
            self.started[name] = getattr(self, "start_" + name.replace("-", "_"))()
        return self.started[name]

    def start_containerd(self):
        archive = self.place / "image-oci.tar"
        podman = self.get("podman")
        podman.podman("tag", engines.IMAGE, f"docker.io/library/{engines.IMAGE}:latest")
        podman.podman("save", "--format", "oci-archive", "-o", archive, f"docker.io/library/{engines.IMAGE}:latest")
        return engines.Containerd(self.directory("containerd"), archive)

    def start_docker(self):
        return engines.Docker(self.directory("docker"), self.image, self.get("containerd"))

    def start_docker_remap(self):
        return engines.Docker(self.directory("docker-remap"), self.image, self.get("containerd"), remap=TESTER)

    def start_docker_caisson(self):
        context = self.directory("context")
        for name in PROGRAMS:
            shutil.copy(self.place / "tools" / name, context / name)
        return self.get("docker").built(context, CONTAINERFILE)

    def start_podman(self):
        return engines.Podman(self.directory("podman"), self.image)

    def start_podman_rootless(self):
        return engines.Podman(self.directory("podman-rootless"), self.image, TESTER)

    def start_bundle(self):
        return engines.Bundle(self.directory("bundle"), self.image)

    def stop(self):
        for engine in reversed(self.started.values()):
            engine.stop()


def with_files(flags, files):
    if isinstance(flags, dict):
        return {key: files.get(value, value) if isinstance(value, str) else value for key, value in flags.items()}
    made = []
    for flag in flags:
        for name, file in files.items():
            if flag.endswith("=" + name) or flag == name:
                flag = flag.removesuffix(name) + file
        made.append(flag)
    return made


def prepare(place, binaries):
    """Prepares the programs and profiles for containers, and the files that replace PROFILE and PODMAN_PROFILE."""
    tools = place / "tools"
    tools.mkdir()
    for name in PROGRAMS:
        shutil.copy(binaries / name, tools / name)
    shutil.copy(HERE / "probes.py", tools)
    files = {"PODMAN_PROFILE": str(place / "podman.json"), "PROFILE": str(place / "profile.json")}
    generator = [sys.executable, str(PROFILES / "make_profile.py")]
    pathlib.Path(files["PROFILE"]).write_text(engines.command(*generator))
    pathlib.Path(files["PODMAN_PROFILE"]).write_text(engines.command(*generator, "--extend", PODMAN_PROFILE))
    return tools, files


def run_row(row, started, tools, files, probes):
    mounts = [(tools, "/opt/caisson", "ro")]
    environment = dict(row.environment)
    if row.volume:
        state = tools.parent / f"state-{row.name}"
        state.mkdir(mode=0o777)
        state.chmod(0o777)
        mounts.append((state, engines.STATE, "rw"))
        environment["CAISSON_HOME"] = engines.STATE + "/caisson"
    if row.engine in ("bundle", "containerd") and "HOME" not in environment:
        environment["HOME"] = "/root" if row.root else f"/home/{engines.USER}"
    text = started.get(row.engine).run(with_files(row.flags, files), mounts, environment,
                                       ["python3", "/opt/caisson/probes.py", row.caisson, *probes])
    return json.loads(text.strip().splitlines()[-1])


def false_promises(results):
    """Checks that doctor and run agree: levels reported as available work, and others fail."""
    levels = results["doctor"].get("levels", [])
    for level, probe in (("full", "run"), ("full", "session"), ("full", "proxy"), ("full", "mcp"), ("landlock", "landlock")):
        if probe in results and (level in levels) != results[probe]["result"].startswith("works"):
            yield f"doctor: {level} {'yes' if level in levels else 'no'}, but {probe}: {results[probe]['result']}"


def inside(arguments):
    place = world.furnish(pathlib.Path(arguments.directory))
    tools, files = prepare(place, pathlib.Path(arguments.binaries))
    started = Engines(place, arguments.image)
    report = {}
    try:
        for row in rows.ROWS:
            chosen = [probe for probe in row.probes if not arguments.probes or probe in arguments.probes.split(",")]
            if not chosen or (arguments.rows and row.name not in arguments.rows.split(",")):
                continue
            try:
                report[row.name] = run_row(row, started, tools, files, chosen)
            except Exception:  # the other rows still count
                report[row.name] = {"container": {"result": "failed: container", "detail": traceback.format_exc()}}
            for probe, found in report[row.name].items():
                print(f"{row.name:34} {probe:9} {found['result']}", flush=True)
            pathlib.Path(arguments.report).write_text(json.dumps(report, indent=1))
        if not arguments.probes and (not arguments.rows or PAGE in arguments.rows.split(",")):
            report[PAGE] = run_page(started, tools)
            pathlib.Path(arguments.report).write_text(json.dumps(report, indent=1))
    finally:
        started.stop()
    return 0


def run_page(started, tools):
    directory = started.directory("page")
    shutil.copytree(tools, directory / "build")
    try:
        results = dict(page.run(SOURCE / "docs" / "containers.md", SOURCE, directory, started.get("docker"),
                                started.get("podman")))
    except Exception:
        results = {"page": {"result": "failed: page", "detail": traceback.format_exc()}}
    for block, found in results.items():
        print(f"{PAGE:34} {block:9} {found['result']}", flush=True)
    return results


def read_expected():
    return tomllib.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}


def compare(report, expected):
    for row, results in report.items():
        for probe, found in results.items():
            wanted = "works" if row == PAGE else expected.get(row, {}).get(probe, "no entry")
            if found["result"] != wanted:
                yield f"{row}, {probe}: expected {wanted!r}, got {found['result']!r}\n    {found.get('detail')}"
        if "doctor" in results:
            yield from (f"{row}: {promise}" for promise in false_promises(results))


def write_expected(report):
    report = {**{row: {probe: {"result": result} for probe, result in probes.items()}
                 for row, probes in read_expected().items()}, **report}
    order = [row.name for row in rows.ROWS]
    lines = ["# What caisson does in each container: one table per row of rows.py, one line per probe of probes.py.",
             "# Written by `test_containers.py --write`; a change of behaviour is a change of this file.", ""]
    for row, results in ((row, report[row]) for row in order if row in report):
        lines.append(f"[{row}]")
        lines += [f"{probe} = {json.dumps(found['result'])}" for probe, found in results.items()]
        lines.append("")
    EXPECTED.write_text("\n".join(lines).rstrip() + "\n")


def make_image(path):
    """Creates a small Debian image with the tools that agents use, from the machine's package sources."""
    sources = [str(source) for source in [pathlib.Path("/etc/apt/sources.list"),
                                          *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*.sources"))]
               if source.exists()]
    codename = engines.command("sh", "-c", ". /etc/os-release && echo $VERSION_CODENAME").strip()
    engines.command("mmdebstrap", "--mode=root", "--variant=minbase", "--dpkgopt=force-unsafe-io",
                    "--include=ca-certificates,git,make,nodejs,npm,python3-venv",
                    f'--customize-hook=chroot "$1" useradd -m -u {engines.USER_ID} {engines.USER}',
                    codename, path, *sources)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries")
    parser.add_argument("--image")
    parser.add_argument("--rows")
    parser.add_argument("--probes", default="")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--report", default="/dev/stdout")
    parser.add_argument("--directory", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = parse()
    if arguments.directory:
        return inside(arguments)
    if os.geteuid() != 0:
        print("test_containers.py: container engines need root", file=sys.stderr)
        return 125
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))
    directory = pathlib.Path(tempfile.mkdtemp(prefix="caisson-ct-"))
    directory.chmod(0o755)
    problems = []
    try:
        image = arguments.image or directory / "image.tar"
        if not os.path.exists(image):
            make_image(image)
        report_file = directory / "report.json"
        status, problems = world.enter(directory, __file__, [
            arguments.binaries, "--image", str(image), "--probes", arguments.probes, "--directory", str(directory),
            "--report", str(report_file), *(["--rows", arguments.rows] if arguments.rows else [])])
        report = json.loads(report_file.read_text()) if report_file.exists() else {}
        if arguments.report != "/dev/stdout":
            pathlib.Path(arguments.report).write_text(json.dumps(report, indent=1))
    finally:
        # Only files of this test: files of containers were on the disk image, which is removed.
        for path in directory.iterdir():
            path.rmdir() if path.is_dir() else path.unlink()
        directory.rmdir()
    if arguments.write:
        write_expected(report)
    problems += compare(report, read_expected())
    if not arguments.rows:
        missing = {row.name for row in rows.ROWS}.symmetric_difference(read_expected())
        problems += [f"{row}: not in both rows.py and {EXPECTED.name}" for row in sorted(missing)]
    if status != 0:
        problems.append(f"the test ended with status {status}")
    for problem in problems:
        print(f"FAILED {problem}")
    print(f"{len(report)} rows, {sum(map(len, report.values()))} probes, {len(problems)} problems")
    return 1 if problems or not report else 0


if __name__ == "__main__":
    sys.exit(main())
