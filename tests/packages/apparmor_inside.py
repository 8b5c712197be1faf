"""apparmor_inside.py [CHECK...]: runs as root in the machine that apparmor_test.sh starts.

Debian's kernels lack Ubuntu's kernel.apparmor_restrict_unprivileged_userns. A profile for the user's shell replaces it:
programs that the shell starts stay in the profile, unless they have a loaded profile, as with Ubuntu's restriction.
"""
import ctypes
import glob
import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tarfile
import time
import traceback

JOB = pathlib.Path("/job")
INSTALLED = pathlib.Path("/etc/apparmor.d/caisson")
PACKAGED = pathlib.Path("/usr/share/caisson/apparmor/caisson")
LIBEXEC = "/usr/libexec/caisson"
SECONDS = 240
FREE, RESTRICTED, POWERLESS, AGENT = "free-shell", "restricted-shell", "powerless-shell", "agent-shell"
PROFILES = """abi <abi/4.0>,
# No user namespaces.
profile restricted /usr/local/bin/restricted-shell {
  capability,
  network, unix, signal, ptrace, mount, remount, umount, pivot_root, mqueue, io_uring, dbus,
  / rwlkm,
  /** rwlkm,
  /** pix,
}
# User namespaces without capabilities, as in the profile unprivileged_userns of Ubuntu 24.04.
profile powerless /usr/local/bin/powerless-shell {
  userns,
  network, unix, signal, ptrace, mount, remount, umount, pivot_root, mqueue, io_uring, dbus,
  / rwlkm,
  /** rwlkm,
  /** pix,
}
# Keeps every program that it starts.
profile agent /usr/local/bin/agent-shell {
  capability,
  network, unix, signal, ptrace, mount, remount, umount, pivot_root, mqueue, io_uring, dbus,
  / rwlkm,
  /** rwlkm,
  /** ix,
  include if exists <local/agent>
}
profile payload {
  all,
}
"""


def root(command, check=True):
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=SECONDS, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def identity(shell):
    return ["setpriv", "--reuid", "tester", "--regid", "tester", "--init-groups", "--inh-caps=-all", "env", "-i",
            "HOME=/home/tester", "PATH=/usr/bin:/bin", f"/usr/local/bin/{shell}", "-c"]


def user(shell, command, **options):
    """Runs a command of the ordinary user in this shell; returns (status, output and errors)."""
    done = subprocess.run([*identity(shell), f"cd && {command}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=SECONDS, check=False, **options)
    return done.returncode, done.stdout


def expect(condition, *shown):
    if not condition:
        raise AssertionError("\n".join(str(part) for part in shown))


def expect_contains(text, *parts):
    for part in parts:
        expect(part in text, f"missing: {part}", text)


def expect_runs(shell):
    status, output = user(shell, "caisson run --workspace :none -- echo ran")
    expect((status, output) == (0, "ran\n"), status, output)


def expect_refused(shell, *parts):
    """Checks that a run and a session fail with these messages; returns the fix in the message of the run."""
    for command in ("run --workspace :none -- echo ran", "session create --workspace :none"):
        status, output = user(shell, f"caisson {command}")
        expect(status == 125, f"caisson {command}: status {status}", output)
        expect_contains(output, *parts)
        if command.startswith("run"):
            remedy = output.split("try: ", 1)[1]
    return remedy


def diagnose(shell):
    """Returns (status, the item user-namespaces) of `caisson doctor`."""
    done = subprocess.run([*identity(shell), "cd && caisson doctor --json"], capture_output=True, text=True, timeout=SECONDS,
                          check=False)
    report = json.loads(done.stdout)
    expect((done.returncode == 0) == report["full_available"], done.stdout)
    return done.returncode, next(item for item in report["items"] if item["name"] == "user-namespaces")


def expect_diagnosis(shell, cause, *parts):
    status, item = diagnose(shell)
    expect(status == 1 and item["state"] == "fail", item)
    expect_contains(item["found"], cause)
    expect_contains(item["remedy"], *parts)
    return item["remedy"]


def expect_healthy(shell):
    status, item = diagnose(shell)
    expect(status == 0 and item["state"] == "pass", item)
    expect_runs(shell)


def carry_out(remedy, until=None):
    """Runs the commands of a fix, as a user would copy them; `until`: only those before this text."""
    remedy = remedy.split(until)[0] if until else remedy
    root("set -e\n" + "\n".join(line[2:] for line in remedy.splitlines() if line.startswith("$ ")))


def loaded(profile):
    return any(line.startswith(profile + " (") for line in open("/sys/kernel/security/apparmor/profiles"))


def load_profile():
    INSTALLED.write_bytes((JOB / "profile").read_bytes())
    root(f"apparmor_parser -r {INSTALLED}")


def remove_profiles():
    """Removes the profile, as on a host that never had one."""
    for name in ("caisson", "caisson-local"):
        if loaded(name):
            root(f"printf 'abi <abi/4.0>,\\nprofile {name} flags=(unconfined) {{ }}\\n' | apparmor_parser -R")
    for path in (INSTALLED, PACKAGED, pathlib.Path("/etc/apparmor.d/caisson-local")):
        path.unlink(missing_ok=True)


def set_up():
    root("mount -t securityfs none /sys/kernel/security && cp -a /job/root/. /")
    libraries = glob.glob("/usr/lib/*-linux-gnu")[0]
    for library in (JOB / "libraries").iterdir():
        if not os.path.exists(f"{libraries}/{library.name}"):
            shutil.copy(library, libraries)
    programs = {
        "/usr/sbin/apparmor_parser":
            "exec /job/parser/ld-linux-*.so.[12] --library-path /job/parser /job/parser/apparmor_parser \"$@\"",
        "/usr/bin/sudo": 'exec "$@"',
    }
    for path, line in programs.items():
        pathlib.Path(path).write_text(f"#!/bin/sh\n{line}\n")
        os.chmod(path, 0o755)
    os.makedirs("/usr/local/bin", exist_ok=True)
    for shell in (FREE, RESTRICTED, POWERLESS, AGENT):
        shutil.copy("/bin/dash", f"/usr/local/bin/{shell}")
    pathlib.Path("/etc/apparmor.d/stand-in").write_text(PROFILES)
    root("apparmor_parser -r /etc/apparmor.d/stand-in")


def kernel_restricts_by_profile():
    expect_contains(pathlib.Path("/sys/kernel/security/apparmor/features/namespaces/mask").read_text(), "userns_create")
    expect(user(FREE, "unshare -Ur true")[0] == 0, "an unconfined user may create user namespaces here")
    expect(user(RESTRICTED, "unshare -Ur true")[0] != 0, "the profile `restricted` does not restrict")
    expect(user(POWERLESS, "unshare -U true")[0] == 0, "the profile `powerless` denies the namespace itself")
    expect(user(POWERLESS, "unshare -Ur true")[0] != 0, "the profile `powerless` leaves capabilities")
    remove_profiles()
    expect_healthy(FREE)


def remedy_without_any_profile_file():
    remove_profiles()
    expect_refused(RESTRICTED, "refused by AppArmor", '"restricted (enforce)"', "try: ", "caisson doctor")
    carry_out(expect_diagnosis(RESTRICTED, "refused by AppArmor", "/etc/apparmor.d/caisson-local"))
    expect_healthy(RESTRICTED)
    load_profile()  # with two profiles for one path, AppArmor applies neither
    expect_healthy(RESTRICTED)


def remedy_for_a_program_elsewhere():
    load_profile()  # it applies only to the installed programs
    home = pathlib.Path("/home/tester/tools")
    for directory in ("bin", "libexec"):
        shutil.copytree(f"/job/root/usr/{directory}", home / directory)
    root(f"chown -R tester: {home}")
    command = f"{home}/bin/caisson run --workspace :none -- echo ran"
    status, output = user(RESTRICTED, command)
    expect(status == 125, status, output)
    expect_contains(output, "refused by AppArmor", "caisson doctor")
    status, output = user(RESTRICTED, f"{home}/bin/caisson doctor --json")
    carry_out(next(item for item in json.loads(output)["items"] if item["name"] == "user-namespaces")["remedy"])
    status, output = user(RESTRICTED, command)
    expect((status, output) == (0, "ran\n"), status, output)
    remove_profiles()
    shutil.rmtree(home)


def remedy_with_the_packaged_profile():
    remove_profiles()
    PACKAGED.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(JOB / "profile", PACKAGED)
    carry_out(expect_diagnosis(RESTRICTED, "refused by AppArmor", f"install -m 644 {PACKAGED} {INSTALLED}"))
    expect_healthy(RESTRICTED)


def remedy_of_a_run_with_the_installed_profile():
    remove_profiles()
    shutil.copy(JOB / "profile", INSTALLED)
    remedy = expect_refused(RESTRICTED, "refused by AppArmor", "try: sudo apparmor_parser -r /etc/apparmor.d/caisson;")
    expect_diagnosis(RESTRICTED, "refused by AppArmor", "installed but not in force", f"$ sudo apparmor_parser -r {INSTALLED}")
    root(remedy.split(";")[0])
    expect_healthy(RESTRICTED)


def remedy_of_a_disabled_profile():
    remove_profiles()
    shutil.copy(JOB / "profile", INSTALLED)
    disabled = INSTALLED.parent / "disable" / INSTALLED.name
    disabled.parent.mkdir(exist_ok=True)
    disabled.symlink_to(INSTALLED)
    try:
        carry_out(expect_diagnosis(RESTRICTED, "refused by AppArmor", "installed but disabled", f"$ sudo rm {disabled}"))
        expect_healthy(RESTRICTED)
    finally:
        disabled.unlink(missing_ok=True)


def package_loads_the_profile():
    remove_profiles()
    shutil.copy(JOB / "profile", INSTALLED)
    script = JOB / "control/postinst"
    root(f"sh {script} configure" if script.exists() else f"apparmor_parser -r {INSTALLED}")
    expect(loaded("caisson"), "the profile is not loaded")
    expect_healthy(RESTRICTED)


def sessions_work():
    load_profile()
    status, output = user(RESTRICTED, "id=$(caisson session create --workspace :none) && caisson session exec $id -- echo ran; "
                          "caisson session destroy $id")
    expect(status == 0 and "ran\n" in output, status, output)


def mcp_works(program="caisson"):
    load_profile()
    requests = [
        {"method": "initialize", "id": 1, "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                                                     "clientInfo": {"name": "test", "version": "1"}}},
        {"method": "notifications/initialized"},
        {"method": "tools/call", "id": 2, "params": {"name": "sandbox_create", "arguments": {}}},
    ]
    server = subprocess.Popen([*identity(RESTRICTED), f"cd && mkdir -p project && cd project && exec {program} mcp"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        def call(*messages):
            """Returns the response to the last request."""
            for message in messages:
                server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()
            for line in server.stdout:
                answer = json.loads(line)
                if answer.get("id") == messages[-1]["id"]:
                    return answer["result"]
            raise AssertionError("the server exited without a response")

        created = call(*requests)
        expect(not created.get("isError"), created)
        arguments = {"sandbox_id": created["structuredContent"]["sandbox_id"], "command": "echo $((6 * 7))"}
        executed = call({"method": "tools/call", "id": 3, "params": {"name": "sandbox_execute", "arguments": arguments}})
        expect(executed["structuredContent"]["stdout"] == "42\n", executed)
        expect_contains(pathlib.Path(f"/proc/{server.pid}/attr/current").read_text(), "caisson (unconfined)")
    finally:
        server.stdin.close()
        server.wait(timeout=SECONDS)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=SECONDS)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS)
        self.sock.connect(self.path)


def serve_works(program="caisson"):
    load_profile()
    path = "/home/tester/api"
    server = subprocess.Popen([*identity(RESTRICTED), f"cd && exec {program} serve --listen none --socket {path}"],
                              stderr=subprocess.DEVNULL)
    # The server accepts only connections of the user that runs it.
    client = os.fork()
    if client == 0:
        try:
            os.setgroups([])
            os.setgid(1000)
            os.setuid(1000)
            deadline = time.monotonic() + SECONDS
            while not os.path.exists(path) and time.monotonic() < deadline:
                time.sleep(0.1)

            def call(method, target, body=None):
                connection = UnixConnection(path)
                connection.request(method, target, body and json.dumps(body), {"Content-Type": "application/json"} if body else {})
                return connection.getresponse().read().decode()

            created = call("POST", "/v1/sandboxes")
            expect('"id"' in created, created)
            sandbox = json.loads(created)["id"]
            answer = call("POST", f"/v1/sandboxes/{sandbox}/commands", {"command": "echo $((6 * 7))"})
            call("DELETE", f"/v1/sandboxes/{sandbox}")
            expect_contains(answer, "42")
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    try:
        expect(os.waitpid(client, 0)[1] == 0, "the client failed")
        expect_contains(pathlib.Path(f"/proc/{server.pid}/attr/current").read_text(), "caisson (unconfined)")
    finally:
        server.terminate()
        server.wait(timeout=SECONDS)
        pathlib.Path(path).unlink(missing_ok=True)


def images_work(program="caisson"):
    load_profile()
    archive = "/home/tester/root.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add("/bin/busybox", "bin/busybox")
    name = f"small:{os.path.basename(program)}"
    status, output = user(RESTRICTED, f"{program} image import -q {archive} {name} && "
                          f"caisson run --image {name} --workspace :none -- /bin/busybox echo ran")
    expect(status == 0 and output.endswith("ran\n"), status, output)


def programs_started_directly_work():
    mcp_works(f"{LIBEXEC}/caisson-mcp")
    serve_works(f"{LIBEXEC}/caisson-server")
    images_work(f"{LIBEXEC}/caisson-image")


def namespaces_without_capabilities_are_explained():
    remove_profiles()
    expect_refused(POWERLESS, "refused by AppArmor", '"powerless (enforce)"', "caisson doctor")
    status, output = user(POWERLESS, "caisson run --json --workspace :none --allow-weaker landlock -- true")
    expect(status == 0 and "landlock tier" in output, status, output)
    carry_out(expect_diagnosis(POWERLESS, "refused by AppArmor", "apparmor_parser -r"))
    expect_healthy(POWERLESS)


def a_profile_that_keeps_caisson_is_named():
    load_profile()
    expect_refused(AGENT, "refused by AppArmor", '"agent (enforce)"', 'add "/usr/bin/caisson px," to "agent"')
    remedy = expect_diagnosis(AGENT, "agent (enforce)", "/usr/bin/caisson px,")
    local = pathlib.Path("/etc/apparmor.d/local/agent")
    local.parent.mkdir(exist_ok=True)
    local.write_text(next(line for line in remedy.splitlines() if line.endswith(" px,")) + "\n")
    root("apparmor_parser -r /etc/apparmor.d/stand-in")
    expect_healthy(AGENT)
    local.unlink()
    root("apparmor_parser -r /etc/apparmor.d/stand-in")


def stacked_profiles_are_named():
    load_profile()
    stack = 'printf "stack restricted" >/proc/self/attr/apparmor/exec'  # for the next exec of the shell
    status, output = user(FREE, f"{stack}; exec caisson run --workspace :none -- echo ran")
    expect(status == 125, status, output)
    expect_contains(output, "refused by AppArmor", "//&", "each of these profiles must grant userns")


def a_policy_names_the_profile_of_the_payload():
    load_profile()
    for profile in ("payload", "unknown"):
        pathlib.Path(f"/home/tester/{profile}.toml").write_text(f"extends = 'bash'\nisolation.apparmor_profile = '{profile}'\n")
    for shell in (FREE, RESTRICTED):
        status, output = user(shell, "caisson run --workspace :none --policy payload.toml -- cat /proc/self/attr/current")
        expect(status == 0 and output.startswith("payload (enforce)"), shell, status, output)
        status, output = user(shell, "caisson run --workspace :none --policy unknown.toml -- echo ran")
        expect(status == 125, status, output)
        expect_contains(output, 'the AppArmor profile "unknown" is not loaded on this host')


def sysctl_remedies_work():
    remove_profiles()
    for name in ("user.max_user_namespaces", "kernel.unprivileged_userns_clone"):
        root(f"sysctl -q -w {name}=0")
        hint = expect_refused(FREE, f"{name}=0", f"try: sudo sysctl -w {name}=")
        remedy = expect_diagnosis(FREE, f"{name}=0", f"$ sudo sysctl -w {name}=")
        root(hint.split(";")[0])
        expect_runs(FREE)
        root(f"sysctl -q -w {name}=0")
        carry_out(remedy)
        expect_healthy(FREE)
    root("sysctl -q -w user.max_user_namespaces=0 kernel.unprivileged_userns_clone=0")
    root("sysctl -q -p /etc/sysctl.d/60-caisson.conf")  # as at the next boot
    expect_healthy(FREE)


def the_sysctl_of_ubuntu_is_diagnosed():
    """Tests only the diagnosis: the sysctl is a file in a directory that hides the real one."""
    remove_profiles()
    shutil.copy(JOB / "profile", INSTALLED)
    expect(ctypes.CDLL(None, use_errno=True).unshare(0x20000) == 0, "unshare")
    root("mount --make-rprivate / && sysctl -q -w kernel.unprivileged_userns_clone=0")
    root("mount -t tmpfs none /proc/sys/kernel && echo 1 >/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
    try:
        expect_refused(FREE, "kernel.apparmor_restrict_unprivileged_userns=1",
                       "try: sudo apparmor_parser -r /etc/apparmor.d/caisson;")
        expect_diagnosis(FREE, "kernel.apparmor_restrict_unprivileged_userns=1", f"$ sudo apparmor_parser -r {INSTALLED}",
                         "$ sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")
    finally:
        root("umount /proc/sys/kernel && sysctl -q -w kernel.unprivileged_userns_clone=1")
    remove_profiles()


CHECKS = (kernel_restricts_by_profile, remedy_without_any_profile_file, remedy_for_a_program_elsewhere,
          remedy_with_the_packaged_profile, remedy_of_a_run_with_the_installed_profile,
          remedy_of_a_disabled_profile, package_loads_the_profile, sessions_work,
          mcp_works, serve_works, images_work, programs_started_directly_work, namespaces_without_capabilities_are_explained,
          a_profile_that_keeps_caisson_is_named, stacked_profiles_are_named, a_policy_names_the_profile_of_the_payload,
          sysctl_remedies_work, the_sysctl_of_ubuntu_is_diagnosed)


def main():
    set_up()
    failed = 0
    checks = [check for check in CHECKS if not sys.argv[1:] or check.__name__ in sys.argv[1:]]
    for check in checks:
        began = time.monotonic()
        try:
            check()
            verdict = "ok"
        except Exception:  # pylint: disable=broad-except
            traceback.print_exc(file=sys.stdout)
            verdict = "FAILED"
            failed += 1
        print(f"{verdict} {check.__name__} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{len(checks) - failed} passed, {failed} failed, 0 skipped", flush=True)
    return 1 if failed or not checks else 0


sys.exit(main())
