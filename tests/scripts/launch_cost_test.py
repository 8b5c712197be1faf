#!/usr/bin/env python3
"""launch_cost_test.py CAISSON: compares the number of system calls of a launch with the recorded maximum.

Times on a shared machine are not reliable, counts are. If a launch makes more calls than recorded here, find the reason,
or raise the maximum in the commit that adds the calls and explain them there.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

# The numbers also depend on the host (files of /etc, directories of PATH); these are for a host that has all of them.
MAX_CALLS = {
    # Five only for root (reading both id maps to the end), two to look for writers that were killed, four to read the table
    # of mounts, which may show caisson's state under another name.
    "supervisor, before the clone": 156,
    "pid 1, before it starts the payload": 395,  # one mount for each masked entry of /proc
    "its second thread": 18,  # including the limits of TCP buffers
    "payload, before its program": 200,
}
# Additional calls of the profile `dev`: the run's store on disk with the overlay's layers and two directories, the cache
# of the workspace with its lock (including checks of owners and modes), and the search for toolchains in PATH.
DEV = 48
# Additional calls of the supervisor for each of these that is a link: x86_64 hosts have /lib64, some have the others.
LOADER_LINKS = ("/lib32", "/lib64", "/libx32")
CGROUP = 75  # additional calls of the supervisor if it creates a cgroup before the clone (v2)

LINE = re.compile(r"^(\d+)\s+(?:<\.\.\. )?(\w+)(.*)$")


def environment(directory):
    return {"PATH": "/usr/bin:/bin", "HOME": directory}


def trace(caisson, directory, profile):
    """Returns the calls of one launch in the order of their end: thread, name, rest of the line."""
    out = os.path.join(directory, "trace")
    command = ["strace", "-f", "-qq", "-e", "signal=none", "-o", out, caisson, "run", "--profile", profile,
               "--", "true"]
    done = subprocess.run(command, cwd=directory, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=environment(directory))
    if "ptrace" in done.stderr and "not permitted" in done.stderr:
        print("this host does not allow tracing")
        sys.exit(77)
    if done.returncode != 0:
        sys.exit(f"{command} failed ({done.returncode}): {done.stderr.strip()}")
    calls = []
    with open(out, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            found = LINE.match(line)
            if found and "<unfinished" not in found[3]:
                calls.append((int(found[1]), found[2], found[3]))
    return calls


def threads(calls):
    """Identifies the threads by their calls, because the trace has the tracer's ids, but clone returns those of the
    namespace."""
    order = list(dict.fromkeys(thread for thread, _, _ in calls))
    main = order[0]
    init = next(thread for thread in order if any(t == thread and n == "pivot_root" for t, n, _ in calls))
    helper = next(thread for thread in order if any(t == thread and n.startswith("umount") for t, n, _ in calls))
    payload = next(thread for thread in order if any(t == thread and n == "seccomp" for t, n, _ in calls))
    return main, init, helper, payload


def starts_library(what):
    """Returns whether only the C library of x86_64 makes the call, when a program starts: aarch64 sets the thread pointer
    without one."""
    return what == "arch_prctl"


def waits(what, rest):
    """Returns whether a call polls for another process; the number of these depends on the machine's load."""
    return what in ("nanosleep", "clock_nanosleep", "sched_yield", "futex") or (
        what == "newfstatat" and rest.startswith(('(AT_FDCWD, "/",', '(AT_FDCWD, "/..",')))


def until(calls, thread, name):
    count = 0
    for who, what, rest in calls:
        if who != thread or waits(what, rest) or starts_library(what):
            continue
        count += 1
        if what == name:
            return count
    sys.exit(f"no {name} in the trace")


def check_settings(calls, own):
    """The entries below the host's /proc/sys share hash chains with those of all live sandboxes: with hundreds of them
    each lookup costs as much as half a launch."""
    shared = [rest for who, what, rest in calls
              if who in own and what == "openat" and rest.startswith('(AT_FDCWD, "/proc/sys')]
    if shared:
        sys.exit(f"limits are written through the host's /proc/sys: {shared}")


def check_second_thread(calls, init, helper):
    """pid 1 and the payload's process set up descriptors by number once the network namespace is ready. The thread
    shares their table: a descriptor that it opened or closed then would be another one for them."""
    ready = next(at for at, (who, what, _) in enumerate(calls) if who == init and what == "setns")
    late = [what for who, what, _ in calls[ready:] if who == helper and what in ("openat", "open", "close", "socket", "dup")]
    if late:
        sys.exit(f"the second thread uses descriptors after the network namespace is ready: {late}")


def count(caisson, directory, profile):
    calls = trace(caisson, directory, profile)
    main, init, helper, payload = threads(calls)
    check_settings(calls, (init, helper))
    check_second_thread(calls, init, helper)
    return {
        "supervisor, before the clone": until(calls, main, "clone3"),
        "pid 1, before it starts the payload": until(calls, init, "signalfd4"),
        "its second thread": sum(1 for who, _, _ in calls if who == helper),
        # The first execve of the payload starts its program; all calls before it are made by caisson.
        "payload, before its program": until(calls, payload, "execve"),
    }


def main():
    caisson = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory:
        result = subprocess.run([caisson, "run", "--json", "--", "true"], cwd=directory, check=True, text=True,
                                stdin=subprocess.DEVNULL, capture_output=True, env=environment(directory))
        cgroup = CGROUP if json.loads(result.stdout)["layers"].get("cgroup", "").startswith("v2") else 0
        links = sum(os.path.islink(path) for path in LOADER_LINKS)
        dearer = 0
        for profile, more in (("bash", 0), ("dev", DEV)):
            print(f"profile {profile}")
            most = dict(MAX_CALLS)
            most["supervisor, before the clone"] += cgroup + more + links
            for what, made in count(caisson, directory, profile).items():
                print(f"  {what:<40}{made:>5} of {most[what]}")
                dearer += made > most[what]
    if dearer:
        sys.exit("a launch makes more system calls than before")


if __name__ == "__main__":
    main()
