"""The tested configurations: engine, flags, user."""
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    name: str
    engine: str              # docker, docker-remap, podman, podman-rootless, containerd, bundle
    flags: object = ()       # of the engine's `run`; PROFILE and PODMAN_PROFILE are replaced by files
    root: bool = False       # the user that runs caisson
    volume: bool = False     # state on a volume instead of the container's overlayfs
    environment: dict = field(default_factory=dict)
    probes: tuple = ("run", "landlock", "doctor", "verify", "session", "proxy", "mcp")
    caisson: str = "/opt/caisson/caisson"


USER = ("--user", "agent")
PROFILE = ("--security-opt", "seccomp=PROFILE")
PATHS = ("--security-opt", "systempaths=unconfined")
UNCONFINED = ("--security-opt", "seccomp=unconfined")
READ_ONLY = ("--read-only", "--tmpfs", "/tmp:exec", "--tmpfs", "/scratch:mode=1777")
UNMASK = ("--security-opt", "unmask=ALL")
# All capabilities but one, instead of --privileged, because some test machines lack that one.
ALL_CAPABILITIES = ("--cap-add", "ALL", "--cap-drop", "SYS_RESOURCE")
WEAKER = ("run", "verify", "session", "proxy", "mcp")
PROC_BOUND = {"CAISSON_FLAGS": "--allow-weaker proc_bound"}
WORK = ("git", "npm", "venv", "make")

ROWS = (
    Row("docker-user", "docker", USER),
    Row("docker-root", "docker", root=True),
    Row("docker-profile-user", "docker", USER + PROFILE),
    Row("docker-profile-paths-user", "docker", USER + PROFILE + PATHS),
    Row("docker-profile-paths-volume-user", "docker", USER + PROFILE + PATHS, volume=True),
    Row("docker-profile-paths-root", "docker", PROFILE + PATHS, root=True, volume=True),
    Row("docker-read-only-user", "docker", USER + PROFILE + PATHS + READ_ONLY, volume=True,
        environment={"PROJECT": "/scratch/project"}),
    Row("docker-unconfined-user", "docker", USER + UNCONFINED),
    Row("docker-unconfined-paths-user", "docker", USER + UNCONFINED + PATHS),
    Row("docker-sys-admin-root", "docker", ("--cap-add", "SYS_ADMIN"), root=True),
    Row("docker-privileged-user", "docker", USER + ("--privileged",)),
    Row("docker-all-capabilities-root", "docker", UNCONFINED + PATHS + ALL_CAPABILITIES, root=True),
    Row("docker-remap-root", "docker-remap", root=True),
    Row("docker-remap-profile-paths-root", "docker-remap", PROFILE + PATHS, root=True, volume=True),
    Row("podman-user", "podman", USER),
    Row("podman-root", "podman", root=True),
    Row("podman-unmask-user", "podman", USER + UNMASK),
    Row("podman-profile-unmask-user", "podman", USER + UNMASK + ("--security-opt", "seccomp=PODMAN_PROFILE")),
    Row("podman-rootless-root", "podman-rootless", root=True),
    Row("podman-rootless-user", "podman-rootless", USER),
    Row("podman-rootless-unmask-root", "podman-rootless", UNMASK, root=True),
    Row("podman-rootless-keep-id", "podman-rootless", ("--userns", "keep-id", *UNMASK),
        environment={"HOME": "/tmp", "PROJECT": "/tmp/project"}),
    Row("containerd-user", "containerd", USER + ("--seccomp",)),
    Row("containerd-root", "containerd", ("--seccomp",), root=True),
    Row("containerd-profile-user", "containerd", USER + ("--seccomp", "--seccomp-profile", "PROFILE")),
    Row("kubernetes-user", "bundle", {"runtime": "runc", "user": 1000}),
    Row("kubernetes-profile-unmasked-user", "bundle",
        {"runtime": "crun", "user": 1000, "seccomp": "PROFILE", "unmasked": True, "first_id": 200000}),
    Row("kubernetes-profile-unmasked-root", "bundle",
        {"runtime": "crun", "seccomp": "PROFILE", "unmasked": True, "first_id": 200000}, root=True, volume=True),
    # The image of packaging/container, with its user and its volume.
    Row("image", "docker-caisson", PROFILE + PATHS, caisson="/usr/local/bin/caisson", probes=("run", "doctor", "session", "mcp"),
        environment={"PROJECT": "/workspace/project"}),
    # The rungs that remain with the default flags, when the policy names them.
    Row("docker-user-landlock", "docker", USER, probes=WEAKER, environment={"CAISSON_FLAGS": "--allow-weaker landlock"}),
    Row("docker-profile-user-proc-bound", "docker", USER + PROFILE, probes=WEAKER, environment=PROC_BOUND),
    Row("podman-user-proc-bound", "podman", USER, probes=WEAKER, environment=PROC_BOUND),
    Row("podman-rootless-root-proc-bound", "podman-rootless", root=True, probes=WEAKER, environment=PROC_BOUND),
    Row("kubernetes-user-proc-bound", "bundle", {"runtime": "runc", "user": 1000}, probes=WEAKER, environment=PROC_BOUND),
    # Ordinary work with the default flags of the engines.
    Row("docker-user-work", "docker", USER, probes=WORK, environment={"CAISSON_FLAGS": "--tier landlock"}),
    Row("podman-user-work", "podman", USER, probes=WORK, environment=PROC_BOUND),
    # The calls that our profiles deny even to a container with all capabilities, and those that no profile denies.
    Row("docker-profile-calls", "docker", PROFILE + ALL_CAPABILITIES, root=True, probes=("calls",)),
    Row("docker-unconfined-calls", "docker", UNCONFINED + ALL_CAPABILITIES, root=True, probes=("calls",)),
    Row("containerd-profile-calls", "containerd", ("--seccomp", "--seccomp-profile", "PROFILE"), root=True,
        probes=("calls",)),
    Row("podman-profile-calls", "podman", ("--security-opt", "seccomp=PODMAN_PROFILE"), root=True, probes=("calls",)),
)
