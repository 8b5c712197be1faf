#!/usr/bin/env python3
"""launches.py CAISSON CAISSON [--rounds N] [-- FLAGS...]: runs `run -- true` of two builds in turn, in random order.

Flags can be added to each: `launches.py "build/caisson --profile bash" "build/caisson --profile dev"`. Prints processor
time (user and system, of caisson and the children it waited for) and elapsed time. Processor time is comparable on a
busy machine, elapsed time is not. The difference is the median of the differences of each round. State and workspace
are in a new directory below TMPDIR.
"""
import argparse
import os
import random
import shlex
import statistics
import tempfile
import time

WARM_UP = 5


def launch(command: list[str], flags: list[str], home: str, null: int) -> tuple[float, float]:
    """Returns processor and elapsed time of one launch, in milliseconds."""
    streams = [(os.POSIX_SPAWN_DUP2, null, stream) for stream in (0, 1, 2)]
    environment = {"PATH": "/usr/bin:/bin", "HOME": home, "CAISSON_HOME": home + "/state"}
    begin = time.perf_counter()
    caisson, *own_flags = command
    pid = os.posix_spawn(caisson, [caisson, "run", *own_flags, *flags, "--", "true"], environment, file_actions=streams)
    _, status, used = os.wait4(pid, 0)
    elapsed = time.perf_counter() - begin
    if status != 0:
        raise SystemExit(f"launches: {caisson} failed: {os.waitstatus_to_exitcode(status)}")
    return (used.ru_utime + used.ru_stime) * 1e3, elapsed * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs=2, metavar="CAISSON")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("flags", nargs="*")
    options = parser.parse_args()
    builds = [shlex.split(build) for build in options.builds]
    for build in builds:
        build[0] = os.path.abspath(build[0])
    null = os.open("/dev/null", os.O_RDWR)
    times: list[list[tuple[float, float]]] = [[], []]
    with tempfile.TemporaryDirectory() as home:
        os.makedirs(home + "/work")
        os.chdir(home + "/work")
        for number in range(options.rounds + WARM_UP):
            for which in random.sample((0, 1), 2):
                measured = launch(builds[which], options.flags, home, null)
                if number >= WARM_UP:
                    times[which].append(measured)
        os.chdir("/")
    for column, what in enumerate(("processor time", "elapsed")):
        first, second = ([one[column] for one in rounds] for rounds in times)
        change = statistics.median(after - before for before, after in zip(first, second))
        print(f"{what:<16}{statistics.median(first):8.3f} ms {statistics.median(second):8.3f} ms {change:+8.3f} ms"
              f" {statistics.median(second) / statistics.median(first):7.3f}")


if __name__ == "__main__":
    main()
