"""Starts container engines with all paths below one directory. Runs in the namespaces that world.py creates."""
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import time

START_TIMEOUT = 60
CONTAINER_TIMEOUT = 900
IMAGE = "caisson-test"
BUILT_IMAGE = "caisson-built"
USER = "agent"       # of the image
USER_ID = 1000
STATE = "/state"     # CAISSON_HOME in rows with a volume


class EngineError(Exception):
    pass


def command(*arguments, environment=None, timeout=CONTAINER_TIMEOUT, **options):
    """Runs a program and returns its standard output; EngineError if it fails."""
    done = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True, errors="replace",
                          env=environment, timeout=timeout, check=False, **options)
    if done.returncode != 0:
        raise EngineError(f"{' '.join(str(argument) for argument in arguments)}: status {done.returncode}\n"
                          f"{done.stderr or done.stdout}")
    return done.stdout


def wait_for(condition, process, what, log):
    """Waits until a daemon responds."""
    deadline = time.monotonic() + START_TIMEOUT
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            raise EngineError(f"{what} did not start:\n{log.read_text(errors='replace')[-3000:]}")
        time.sleep(0.1)


class Daemon:
    """A daemon in the foreground, stopped by its process id."""

    def __init__(self, arguments, log, environment=None):
        self.log = log
        with open(log, "ab") as output:
            self.process = subprocess.Popen([str(argument) for argument in arguments], stdin=subprocess.DEVNULL,
                                            stdout=output, stderr=output, env=environment)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(START_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Engine:
    def stop(self):
        pass


class Containerd(Engine):
    def __init__(self, directory, image):
        self.socket = directory / "containerd.sock"
        self.image = image
        self.imported = False
        configuration = directory / "containerd.toml"
        configuration.write_text(f"""version = 2
root = "{directory}/containerd"
state = "{directory}/containerd-state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "{self.socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{directory}/opt"
""")
        self.daemon = Daemon(["containerd", "--config", configuration], directory / "containerd.log")
        wait_for(self.socket.exists, self.daemon.process, "containerd", self.daemon.log)
        self.count = 0

    def ctr(self, *arguments):
        return command("ctr", "--address", self.socket, *arguments)

    def run(self, flags, mounts, environment, arguments):
        if not self.imported:
            self.ctr("images", "import", self.image)
            self.imported = True
        self.count += 1
        if "--user" in flags:  # which ctr 1.6 lacks
            at = flags.index("--user")
            arguments = ["setpriv", "--reuid", flags[at + 1], "--regid", flags[at + 1], "--clear-groups", "--", *arguments]
            flags = [*flags[:at], *flags[at + 2:]]
        for source, target, mode in mounts:
            flags = [*flags, "--mount", f"type=bind,src={source},dst={target},options=rbind:{mode}"]
        for name, value in environment.items():
            flags = [*flags, "--env", f"{name}={value}"]
        return self.ctr("run", "--rm", *flags, f"docker.io/library/{IMAGE}:latest", f"row-{self.count}", *arguments)

    def stop(self):
        self.daemon.stop()


class Docker(Engine):
    def __init__(self, directory, image, containerd, remap=None):
        self.socket = directory / "docker.sock"
        self.prefix = ["docker", "--host", f"unix://{self.socket}"]
        self.run_flags = ["--network", "none"]
        self.build_flags = ["--network", "none", "--build-arg", f"BASE={IMAGE}"]
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "DOCKER_BUILDKIT": "0"}
        configuration = directory / "daemon.json"
        configuration.write_text("{}\n")
        arguments = ["dockerd", "--config-file", configuration, "--data-root", directory / "data",
                     "--exec-root", directory / "exec", "--pidfile", directory / "docker.pid",
                     "--host", f"unix://{self.socket}", "--containerd", containerd.socket,
                     "--containerd-namespace", directory.name, "--containerd-plugins-namespace", directory.name + "-p",
                     "--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip-forward=false",
                     "--ip-masq=false", "--userland-proxy=false", "--storage-driver", "overlay2"]
        if remap:
            arguments += ["--userns-remap", remap]
        self.daemon = Daemon(arguments, directory / "docker.log")
        wait_for(self.answers, self.daemon.process, "dockerd", self.daemon.log)
        if image:
            self.docker("import", image, IMAGE)

    def answers(self):
        return self.socket.exists() and subprocess.run([*self.prefix, "version"], capture_output=True,
                                                       check=False).returncode == 0

    def docker(self, *arguments):
        return command(*self.prefix, *arguments, environment=self.environment)

    def run(self, flags, mounts, environment, arguments, image=IMAGE):
        for source, target, mode in mounts:
            flags = [*flags, "--volume", f"{source}:{target}:{mode}"]
        for name, value in environment.items():
            flags = [*flags, "--env", f"{name}={value}"]
        return self.docker("run", "--rm", *self.run_flags, *flags, image, *arguments)

    def built(self, context, containerfile):
        """Builds the image of a Containerfile without network access, and returns an engine that runs it."""
        self.docker("build", *self.build_flags, "--file", containerfile, "--tag", BUILT_IMAGE, context)
        return BuiltImage(self)

    def stop(self):
        self.daemon.stop()


class BuiltImage(Engine):
    def __init__(self, docker):
        self.docker = docker

    def run(self, flags, mounts, environment, arguments):
        return self.docker.run([*flags, "--entrypoint", arguments[0]], mounts, environment, arguments[1:], BUILT_IMAGE)


class Podman(Engine):
    def __init__(self, directory, image, user=None):
        self.directory = directory
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "TMPDIR": str(directory / "tmp"),
                            "XDG_RUNTIME_DIR": str(directory / "run"), "LC_ALL": "C.UTF-8"}
        for name in ("tmp", "run"):
            (directory / name).mkdir(mode=0o700)
        self.prefix = ["podman", "--root", directory / "storage", "--runroot", directory / "rr", "--tmpdir",
                       directory / "tmp", "--cgroup-manager", "cgroupfs", "--events-backend", "file", "--runtime", "runc"]
        # Limits that a machine without CAP_SYS_RESOURCE can set.
        self.run_flags = ["--network", "none", "--ulimit", "nofile=1024:4096", "--ulimit", "nproc=1000:1000"]
        if user:
            self.prefix = ["setpriv", "--reuid", user, "--regid", pwd.getpwnam(user).pw_gid, "--init-groups",
                           "--inh-caps=-all", "--", *self.prefix]
            for path in (directory, directory / "tmp", directory / "run"):
                shutil.chown(path, user, pwd.getpwnam(user).pw_gid)
        if image:
            with open(image, "rb") as archive:  # the user may not be able to read its directory
                self.podman("import", "-", IMAGE, stdin=archive)

    def podman(self, *arguments, **options):
        return command(*self.prefix, *arguments, environment=self.environment, cwd=self.directory, **options)

    def run(self, flags, mounts, environment, arguments):
        for source, target, mode in mounts:
            flags = [*flags, "--volume", f"{source}:{target}:{mode}"]
        for name, value in environment.items():
            flags = [*flags, "--env", f"{name}={value}"]
        return self.podman("run", "--rm", *self.run_flags, *flags, IMAGE, *arguments)


class Bundle(Engine):
    """A container with the configuration that the kubelet's container runtime passes to runc or crun."""

    def __init__(self, directory, image):
        self.directory = directory
        self.root = directory / "rootfs"
        self.root.mkdir()
        command("tar", "-C", self.root, "-xf", image)
        self.count = 0

    def run(self, flags, mounts, environment, arguments):
        """`flags` is a dictionary: runtime, user, seccomp (a file), unmasked, first_id (of the user namespace)."""
        self.count += 1
        name = f"row-{self.count}"
        bundle = self.directory / name
        for path in ("upper", "work", "rootfs"):
            (bundle / path).mkdir(parents=True)
        # metacopy: changing the owner does not copy data.
        options = f"lowerdir={self.root},upperdir={bundle}/upper,workdir={bundle}/work,metacopy=on,redirect_dir=on"
        command("mount", "-t", "overlay", "overlay", "-o", options, bundle / "rootfs")
        if flags.get("first_id"):
            # Replaces the idmapped root that the kubelet's runtime mounts.
            shift_owners(bundle / "rootfs", flags["first_id"])
        (bundle / "config.json").write_text(json.dumps(specification(flags, mounts, environment, arguments, name)))
        try:
            return command(flags["runtime"], "--root", self.directory / "runtime", "run", "--bundle", bundle, name)
        finally:
            subprocess.run(["umount", str(bundle / "rootfs")], check=False)


def shift_owners(root, first):
    """Changes the owner of every file, without following links."""
    for directory, names, files in os.walk(root):
        for path in [directory, *(os.path.join(directory, name) for name in names + files)]:
            found = os.lstat(path)
            if found.st_uid < first:
                os.lchown(path, found.st_uid + first, found.st_gid + first)


MASKED = ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
          "/proc/sched_debug", "/proc/scsi", "/sys/firmware"]
READ_ONLY = ["/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
CAPABILITIES = [f"CAP_{name}" for name in ("CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP "
                                           "NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE").split()]


def specification(flags, mounts, environment, arguments, name):
    """Returns the config.json of a pod's container: containerd's default capabilities, mounts and masked paths."""
    user = flags.get("user", 0)
    held = CAPABILITIES if user == 0 else []
    shared = {"nosuid", "noexec", "nodev"}
    made = {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False, "user": {"uid": user, "gid": user}, "args": list(arguments), "cwd": "/",
            "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                    *(f"{key}={value}" for key, value in environment.items())],
            "capabilities": {"bounding": CAPABILITIES, "effective": held, "permitted": held},
            "noNewPrivileges": flags.get("no_new_privileges", False),
        },
        "root": {"path": "rootfs", "readonly": flags.get("read_only", False)},
        "hostname": name,
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc", "options": sorted(shared)},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
             "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]},
            {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
             "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]},
            {"destination": "/dev/shm", "type": "tmpfs", "source": "shm",
             "options": [*sorted(shared), "mode=1777", "size=65536k"]},
            {"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue", "options": sorted(shared)},
            {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": [*sorted(shared), "ro"]},
            *({"destination": target, "type": "bind", "source": str(source), "options": ["rbind", mode]}
              for source, target, mode in mounts),
        ],
        "linux": {
            "cgroupsPath": f"/{name}",
            "namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount", "network", "cgroup")],
            "resources": {"devices": [{"allow": False, "access": "rwm"}]},
        },
    }
    if not flags.get("unmasked"):
        made["linux"]["maskedPaths"], made["linux"]["readonlyPaths"] = MASKED, READ_ONLY
    if flags.get("seccomp"):
        made["linux"]["seccomp"] = json.loads(pathlib.Path(flags["seccomp"]).read_text())
    if flags.get("first_id"):
        made["linux"]["namespaces"].append({"type": "user"})
        mapping = [{"containerID": 0, "hostID": flags["first_id"], "size": 65536}]
        made["linux"]["uidMappings"] = made["linux"]["gidMappings"] = mapping
    return made
