"""Lists the third-party software in each program, by Debian package, from the link map and the headers of the objects.

A package is "static" if the program contains object code of one of its archives, "header" if an object of caisson was
compiled with one of its headers and no archive was linked, "dynamic" if the program loads one of its libraries.
In a build for another architecture the packages are those of CAISSON_SYSROOT (tests/vm/toolchain.sh).
"""
import os
import pathlib
import re
import subprocess

SYSROOT = os.environ.get("CAISSON_SYSROOT", "")
PROGRAMS = ("caisson", "caisson-broker", "caisson-commands", "caisson-image", "caisson-mcp", "caisson-server", "caisson-unpack")

# SPDX expressions of the code that is linked into a program, by source package. Debian's copyright files also cover
# build scripts, tests and documentation, so a program cannot derive the expressions from them.
LICENCES = {
    "acl": "LGPL-2.1-or-later",
    "boost1.74": "BSL-1.0",
    "boost1.83": "BSL-1.0",
    "curl": "curl",
    "gcc": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "glibc": "LGPL-2.1-or-later",
    "libarchive": "BSD-2-Clause",
    "libyaml": "MIT",
    "libzstd": "BSD-3-Clause OR GPL-2.0-only",
    "linux": "GPL-2.0-only WITH Linux-syscall-note",
    "nlohmann-json3": "MIT",
    "openssl": "Apache-2.0",
    "abseil": "Apache-2.0",
    "re2": "BSD-3-Clause",
    "tomlplusplus": "MIT",
    "zlib": "Zlib",
}


def run(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True).stdout


def query(*arguments, check=True):
    return run("dpkg-query", f"--admindir={SYSROOT}/var/lib/dpkg", *arguments, check=check)


def licence_of(source):
    if re.fullmatch(r"gcc(-\d+)?", source):
        source = "gcc"
    if re.fullmatch(r"boost\d+\.\d+", source):
        return "BSL-1.0"
    if re.fullmatch(r"linux(-\d.*)?", source):
        source = "linux"
    return LICENCES.get(source, "NOASSERTION")


class Packages:
    """Finds the Debian package that owns a file."""

    def __init__(self):
        self._owner = {}
        self._facts = {}

    def find(self, paths):
        """Returns the packages that own at least one of `paths`."""
        wanted = sorted({os.path.realpath(path) for path in paths} - self._owner.keys())
        for start in range(0, len(wanted), 500):
            self._ask(wanted[start : start + 500])
        # Packages older than the /usr merge list files of /usr/lib as /lib in Debian 12.
        missing = [path for path in wanted if path not in self._owner and path.startswith("/usr/lib/")]
        if missing:
            self._ask([path.removeprefix("/usr") for path in missing], prefix="/usr")
        unknown = [path for path in wanted if path not in self._owner]
        if unknown:
            raise SystemExit(f"components: no Debian package owns {unknown[0]}")
        return {self._owner[os.path.realpath(path)] for path in paths}

    def _ask(self, paths, prefix=""):
        for line in query("--search", *paths, check=False).splitlines():
            names, _, path = line.partition(": ")
            if not line.startswith("diversion "):
                self._owner[prefix + path] = names.split(",")[0].strip()

    def facts(self, package):
        if package not in self._facts:
            fields = query("--show", "--showformat=${Package}\n${Version}\n${source:Package}\n${Homepage}\n", package)
            name, version, source, homepage = fields.split("\n")[:4]
            self._facts[package] = {"package": name, "version": version, "source": source, "homepage": homepage,
                                    "licence": licence_of(source),
                                    "copyright_file": os.path.realpath(f"{SYSROOT}/usr/share/doc/{name}/copyright")}
        return self._facts[package]


def linked_archives(map_file, build):
    """Returns the external archives and objects of which the program contains a member."""
    found = set()
    text = map_file.read_text(errors="replace")
    for match in re.finditer(r"^(/\S+\.a)\([^)]+\)|^LOAD (/\S+\.o)$", text, re.MULTILINE):
        path = os.path.realpath(match[1] or match[2])
        if not path.startswith(str(build)):
            found.add(path)
    return found


def loaded_libraries(program):
    """Returns the files of the shared libraries that the program loads."""
    machine = {"AArch64": "aarch64", "Advanced Micro Devices X86-64": "x86_64"}
    header = run("readelf", "--file-header", "--dynamic", "--wide", str(program))
    folder = f"{SYSROOT}/lib/{machine[re.search('Machine: +(.+)', header)[1]]}-linux-gnu"
    return {f"{folder}/{name}" for name in re.findall(r"NEEDED.*\[(.+)\]", header)}


def headers_by_object(build):
    """Returns the external headers that each object of caisson was compiled with."""
    headers, current = {}, None
    for line in run("ninja", "-C", str(build), "-t", "deps").splitlines():
        if line and not line.startswith(" "):
            current = line.split(":")[0]
            headers[current] = set()
        elif current and line.strip().startswith(f"{SYSROOT}/usr/"):
            headers[current].add(line.strip())
    return headers


def objects_of(map_file):
    """Returns the objects of caisson in the program: (folder in the build directory, end of the file name)."""
    text = map_file.read_text(errors="replace")
    objects = {("", name) for name in re.findall(r"^LOAD (?!/)(\S+\.o)$", text, re.MULTILINE)}
    for archive, member in re.findall(r"^(?!/)(\S+\.a)\(([^)]+\.o)\)", text, re.MULTILINE):
        # The objects of libcaisson_policy.a are in caisson_policy.dir and caisson_policy_core.dir.
        target = os.path.basename(archive).removeprefix("lib").removesuffix(".a")
        objects.add((f"{os.path.dirname(archive)}/CMakeFiles/{target}", f"/{member}"))
    return objects


def collect(build):
    """Returns ({program: {package: how}}, Packages), from a build directory with the link map of each program."""
    build = pathlib.Path(build).resolve()
    packages = Packages()
    headers = headers_by_object(build)
    result = {}
    for program in PROGRAMS:
        map_file = build / f"{program}.map"
        if not map_file.exists():
            continue
        objects = objects_of(map_file)
        used = set()
        for name, files in headers.items():
            if any(name.startswith(folder) and name.endswith(end) for folder, end in objects):
                used |= files
        uses = dict.fromkeys(packages.find(used), "header")
        uses |= dict.fromkeys(packages.find(loaded_libraries(build / program)), "dynamic")
        uses |= dict.fromkeys(packages.find(linked_archives(map_file, build)), "static")
        result[program] = uses
    return result, packages
