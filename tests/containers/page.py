"""Runs the marked blocks of docs/containers.md: `<!-- row: docker -->` or `<!-- row: podman -->` before a ```sh block."""
import pathlib
import re
import shlex
import shutil
import subprocess

BLOCK = re.compile(r"<!-- row: (docker|podman) -->\n```sh\n(.*?)```", re.S)
TIMEOUT = 300


def blocks(text):
    return [(f"{engine}-{number}", block) for number, (engine, block) in enumerate(BLOCK.findall(text), 1)]


def wrapper(path, prefix, options):
    """Writes a program that passes its arguments to the test's engine, with options for subcommands that need them."""
    prefix = [shutil.which(part) if part in ("docker", "podman") else part for part in prefix]  # not the wrapper again
    cases = "".join(f"  {name}) shift; set -- {name} {shlex.join(map(str, flags))} \"$@\" ;;\n" for name, flags in options.items())
    path.write_text(f'#!/bin/sh\ncase $1 in\n{cases}esac\nexec {shlex.join(map(str, prefix))} "$@"\n')
    path.chmod(0o755)


def run(page, source, directory, docker, podman):
    """Yields (name, result) of each block. `directory` contains the build and the folder packaging of the source."""
    programs = directory / "programs"
    programs.mkdir()
    wrapper(programs / "docker", docker.prefix, {"run": docker.run_flags, "build": docker.build_flags})
    wrapper(programs / "podman", podman.prefix, {"run": podman.run_flags})
    wrapper(programs / "make", ["true"], {})
    (directory / "packaging").symlink_to(source / "packaging")
    copied = False
    for name, block in blocks(page.read_text()):
        if name.startswith("podman") and "podman run" in block and not copied:
            archive = directory / "caisson.tar"
            docker.docker("save", "-o", archive, "caisson")
            podman.podman("load", "-i", archive)
            copied = True
        environment = {**docker.environment, "PATH": f"{programs}:{docker.environment['PATH']}"}
        done = subprocess.run(["bash", "-eo", "pipefail", "-c", block], cwd=directory, env=environment, timeout=TIMEOUT,
                              capture_output=True, text=True, errors="replace", check=False)
        yield name, {"result": "works" if done.returncode == 0 else f"failed: status {done.returncode}",
                     "detail": block + (done.stdout + done.stderr)[-1200:]}
