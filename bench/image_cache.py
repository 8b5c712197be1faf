#!/usr/bin/env python3
"""image_cache.py CAISSON ROOT [COUNT]: measures whether sandboxes with the same root share its pages.

Starts COUNT sandboxes (default 100) that read all libraries of ROOT and then sleep. Prints the growth of the machine's
memory use after the first sandbox, and RSS and PSS of the programs inside. Run it on an idle machine.
"""
import glob
import os
import re
import subprocess
import sys


def meminfo():
    with open("/proc/meminfo", encoding="ascii") as file:
        return {line.split(":")[0]: int(line.split()[1]) for line in file}


def sizes(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        text = file.read()
    return [int(re.search(rf"\n{name}:\s+(\d+)", text)[1]) for name in ("Rss", "Pss")]


def payloads(mark):
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                if file.read() == f"sleep\0{mark}\0":
                    found.append(sizes(path.split("/")[2]))
        except OSError:
            pass
    return found


def main():
    caisson, root = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    mark = str(600 + os.getpid() / 10**7)
    command = [caisson, "run", "--profile", "bash", "--workspace", ":none", "--image", root, "--", "sh", "-c",
               f"cat /usr/lib/*/*.so* >/dev/null; echo ready; exec sleep {mark}"]
    running = []

    def start():
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE))
        running[-1].stdout.readline()

    try:
        start()
        before = meminfo()
        for _ in range(count - 1):
            start()
        after = meminfo()
        inside = payloads(mark)
    finally:
        for process in running:
            process.kill()
            process.wait()
    read = sum(os.stat(path).st_size for path in set(map(os.path.realpath, glob.glob(f"{root}/usr/lib/*/*.so*"))))
    print(f"each sandbox reads {read / 2**20:.0f} MiB; {count - 1} more sandboxes:")
    for name in ("Cached", "AnonPages"):
        print(f"  {name} grew by {(after[name] - before[name]) / 1024:.0f} MiB")
    if inside:
        rss, pss = (sum(column) / len(inside) for column in zip(*inside))
        print(f"  a program inside: RSS {rss:.0f} KiB, PSS {pss:.0f} KiB (mean of {len(inside)})")


if __name__ == "__main__":
    main()
