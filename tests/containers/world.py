"""Private namespaces for the engines (mount, pid, network, ipc, uts and cgroup), and a file system in a file.

Mounts, network links, firewall rules and processes of an engine disappear with the namespaces, even if the test is
killed. Cgroups are below directories that enter() removes.
"""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

DISK_SIZE = 24 << 30  # sparse
REMOVAL_TIMEOUT = 60  # for processes that were killed while they wrote to the disk


def hierarchies():
    """Returns pairs of a cgroup hierarchy's controllers ("" for version 2) and this process's directory in it."""
    own = {}
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        own[controllers] = path
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        kind, _, options = fields[fields.index("-") + 1:][:3]
        if kind == "cgroup2" and fields[3] == "/":
            yield "", pathlib.Path(fields[4]) / own[""].lstrip("/")
        elif kind == "cgroup" and fields[3] == "/":
            for controllers, path in own.items():
                if controllers and set(controllers.split(",")) <= set(options.split(",")):
                    yield controllers, pathlib.Path(fields[4]) / path.lstrip("/")


def make_cgroups(name, made):
    for controllers, directory in hierarchies():
        path = directory / name
        path.mkdir()
        made.append(path)
        if controllers == "cpuset":
            for file in ("cpuset.cpus", "cpuset.mems"):
                (path / file).write_text((directory / file).read_text())


def remove_cgroup(path):
    for directory, _, _ in os.walk(path, topdown=False):
        deadline = time.monotonic() + REMOVAL_TIMEOUT
        while True:
            try:
                os.rmdir(directory)
                break
            except FileNotFoundError:
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


def output(*arguments):
    if not shutil.which(arguments[0]):
        return ""
    return subprocess.run(arguments, capture_output=True, text=True, check=False).stdout


def snapshot(name):
    """Returns what an engine could leave on the machine; of processes and cgroups, those with the world's name."""
    processes = []
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.name != str(os.getpid()) and (
                    name.encode() in (entry / "cmdline").read_bytes() or name in (entry / "cgroup").read_text()):
                processes.append((entry / "comm").read_text().strip())
    groups = [directory for _, root in hierarchies() for directory in root.glob(f"**/{name}")]
    engine_groups = [str(entry) for _, root in hierarchies() for entry in root.iterdir()
                     if entry.name in ("docker", "libpod_parent", "default", "k8s.io", "kubepods", "buildkit")]
    links = [line.split(":")[1] for line in output("ip", "-o", "link").splitlines()]
    return {
        "mounts": sorted(pathlib.Path("/proc/self/mounts").read_text().splitlines()),
        "processes": sorted(processes),
        "cgroups": sorted(map(str, groups)) + sorted(engine_groups),
        "links": sorted(links),
        "firewall": output("iptables-save") and [line for line in output("iptables-save").splitlines()
                                                 if not line.startswith("#")],
        "loop devices": sorted(output("losetup", "-n", "-O", "BACK-FILE").split()),
        "run": sorted(entry.name for entry in pathlib.Path("/run").iterdir()),
    }


def differences(before, after):
    for key, value in before.items():
        if value != after[key]:
            gone = [entry for entry in value if entry not in after[key]]
            new = [entry for entry in after[key] if entry not in value]
            yield f"{key}: new {new}, gone {gone}"


def enter(directory, program, arguments):
    """Runs `program` in the namespaces; returns its exit status and what it left on the machine."""
    name = directory.name
    before = snapshot(name)
    groups = []

    def join():
        for group in groups:
            (group / "cgroup.procs").write_text("0")

    try:
        make_cgroups(name, groups)
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child=KILL", "--net", "--ipc",
             "--uts", "--cgroup", "--mount-proc", sys.executable, program, *arguments], preexec_fn=join)
        try:
            status = process.wait()
        except BaseException:
            process.kill()  # --kill-child also kills the first process of the pid namespace, and thus all others
            process.wait()
            raise
    finally:
        for group in groups:
            remove_cgroup(group)
    return status, list(differences(before, snapshot(name)))


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


def furnish(directory):
    """Runs inside: mounts the disk, empty directories where engines write, and the private cgroup hierarchies."""
    disk = directory / "disk"
    with open(disk, "wb") as file:
        file.truncate(DISK_SIZE)
    subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", str(disk)], check=True)
    place = directory / "w"
    place.mkdir()
    mount("-o", "loop", disk, place)
    disk.unlink()
    for path in ("/run", "/var/lib/containers", "/var/lib/cni", "/etc/cni"):
        if os.path.isdir(path):
            mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", path)
    for path in ("/run/lock", "/run/user"):
        os.mkdir(path)
    controllers = [line.split(":")[1] for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()]
    first = [name for name in controllers if name]
    if not first:
        mount("-t", "cgroup2", "cgroup2", "/sys/fs/cgroup")
        delegate(pathlib.Path("/sys/fs/cgroup"))
    else:
        # Without the version 2 mount of hybrid systems, which crun 1.8 does not accept.
        mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", "/sys/fs/cgroup")
        for name in first:
            path = pathlib.Path("/sys/fs/cgroup") / name.removeprefix("name=")
            path.mkdir()
            mount("-t", "cgroup", "-o", name if "=" not in name else f"none,{name}", "cgroup", path)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    return place


def delegate(root):
    """In version 2 a cgroup with controllers cannot contain processes, so the test moves to a child."""
    child = root / "test"
    child.mkdir()
    for pid in (root / "cgroup.procs").read_text().split():
        (child / "cgroup.procs").write_text(pid)
    wanted = (root / "cgroup.controllers").read_text().split()
    (root / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in wanted))
