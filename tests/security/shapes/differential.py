#!/usr/bin/env python3
"""differential.py [--trees N] [--seed S] [--programs DIR] [--interfaces run,session,mcp,http] [--keep]

Random trees (tree.py) with random flags (flags.py) are shown through the interfaces of caisson (interfaces.py). Every file
contains a canary; a canary must be readable if, and only if, the documents say so (reference.py). Exit status 1 and the
seed, path, expectation and result of each difference if there is one; `--seed SEED --trees 1 --keep` repeats it and leaves
the tree. Without --programs the tested program is CAISSON_BIN, and caisson-mcp and caisson-server are beside it.
"""
import argparse
import os
import shutil
import signal
import sys
import tempfile
import time

import flags
import interfaces
import reference
from tree import Tree

INTERFACES = ("run", "session", "mcp", "http")
READS = 12  # files per tree that are read by name through `session read`, which is a process each


class Comparison:
    """Compares one tree; `differences` are lines of text."""

    def __init__(self, programs, tree):
        self.programs, self.tree, self.differences = programs, tree, []

    def compare(self, label, seen, expected, optional=frozenset()):
        """`expected`: by canary, whether it is readable, and why. Those in `optional` may be missing."""
        for canary, (readable, reason) in expected.items():
            if readable == (canary in seen) or (readable and canary in optional):
                continue
            planted = self.tree.planted[canary]
            inode = self.tree.nodes[planted.path].inode
            names = [os.fsdecode(path) for path, node in self.tree.nodes.items() if node.inode == inode and node.kind == "file"]
            links = [f"{os.fsdecode(path)!r} -> {os.fsdecode(node.target)!r}" for path, node in self.tree.nodes.items()
                     if node.kind == "link" and reference.resolve(self.tree, path) in map(os.fsencode, names)]
            self.differences.append(
                f"seed {self.tree.seed}, {label}: {names} ({planted.kind}, {planted.role}, mode {self.tree.nodes[planted.path].mode:o}"
                f"{', links ' + ', '.join(links) if links else ''}): expected {'readable' if readable else 'hidden'} ({reason}), "
                f"{canary} was {'readable' if canary in seen else 'not readable'}")

    def expect(self, view, chmod=True, below=b"", listed=False):
        return {canary: view.readable(canary, chmod, below, listed) for canary in self.tree.planted if not view.unspecified(canary)}

    def run(self):
        for mode in ("overlay", "ro", "rw"):
            denied = flags.for_direct_writes(self.tree) if mode == "rw" else self.tree.denied
            self.compare(f"run {mode}", interfaces.run(self.programs, self.tree, mode),
                         self.expect(reference.View(self.tree, mode, denied)))
            self.tree.restore_modes()

    def files(self, some=None):
        paths = [path[2:] for path, node in sorted(self.tree.nodes.items()) if node.kind != "directory" and path.startswith(b"w/")]
        return paths if some is None or len(paths) <= some else self.tree.pick.sample(paths, some)

    def outside(self, view):
        """The canaries that have no readable name in the workspace; links may lead to them."""
        return {canary for canary, (readable, _) in self.expect(view, False, b"w/").items() if not readable}

    def session(self):
        view = reference.View(self.tree, "overlay", self.tree.denied)
        session = interfaces.Session(self.programs, self.tree)
        try:
            expected = self.expect(view, False)
            self.compare("session read", session.read(self.files(READS)), expected, optional=expected)
            self.compare("session cp", session.copy(), self.expect(view, False, b"w/", True), self.left_out_by_copy())
            expected = self.expect(view)
            self.compare("session exec", session.execute(), expected)
            self.compare("session export", session.export(), expected, optional=expected)
        finally:
            session.close()
            self.tree.restore_modes()

    def left_out_by_copy(self):
        """The canaries that `session cp` may leave out: files that the host would execute."""
        left_out = set()
        for canary, planted in self.tree.planted.items():
            inode = self.tree.nodes[planted.path].inode
            names = [path for path, node in self.tree.nodes.items() if node.inode == inode]
            if any(reference.is_executed(self.tree, path) for path in names):
                left_out.add(canary)
        return left_out

    def mcp(self):
        view = reference.View(self.tree, "overlay", self.tree.denied)
        sandbox = interfaces.Mcp(self.programs, self.tree)
        try:
            self.compare("mcp read", sandbox.read(self.files()), self.expect(view, False), self.outside(view))
            expected = self.expect(view)
            self.compare("mcp exec", sandbox.execute(), expected)
            self.compare("mcp diff", sandbox.difference(), expected, optional=expected)
        finally:
            sandbox.close()
            self.tree.restore_modes()

    def http(self):
        denied = [path for path in self.tree.denied if flags.is_text(path)]  # a policy in JSON names nothing else
        view = reference.View(self.tree, "overlay", denied)
        sandbox = interfaces.Http(self.programs, self.tree, denied)
        try:
            self.compare("http files", sandbox.read(self.files()), self.expect(view, False), self.outside(view))
            self.compare("http archive", sandbox.archive(), self.expect(view, False, b"w/", True))
            expected = self.expect(view)
            self.compare("http exec", sandbox.execute(), expected)
            self.compare("http diff", sandbox.difference(), expected, optional=expected)
        finally:
            sandbox.close()
            self.tree.restore_modes()


def compare(programs, scratch, seed, wanted, keep):
    """Returns the differences of one tree, and the seconds for each interface."""
    tree = Tree(os.path.join(scratch, f"t{seed}"), seed)
    try:
        flags.choose(tree)
        comparison, seconds = Comparison(programs, tree), {}
        for name in wanted:
            begun = time.monotonic()
            try:
                getattr(comparison, name)()
            except interfaces.Refused as refused:
                comparison.differences.append(f"seed {seed}, {name}: refused: {refused}")
            seconds[name] = time.monotonic() - begun
    finally:
        if not keep:
            tree.remove()
    if comparison.differences:
        comparison.differences.append(f"seed {seed}: flags {flags.arguments(tree, tree.denied)}")
    return comparison.differences, seconds


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--seed", default="1", help="of the first tree; several, separated by commas, begin --trees trees each")
    parser.add_argument("--programs", help="the directory of caisson, caisson-mcp and caisson-server")
    parser.add_argument("--interfaces", default=",".join(INTERFACES))
    parser.add_argument("--keep", action="store_true", help="leave the trees")
    given = parser.parse_args()
    given.interfaces = given.interfaces.split(",")
    given.seeds = [first + number for first in map(int, given.seed.split(",")) for number in range(given.trees)]
    if set(given.interfaces) - set(INTERFACES):
        parser.error(f"unknown interface: expected some of {', '.join(INTERFACES)}")
    given.caisson = os.path.join(given.programs, "caisson") if given.programs else os.environ.get("CAISSON_BIN")
    if not given.caisson:
        parser.error("no program to test: expected --programs or CAISSON_BIN")
    return given


def main():
    given = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server and the trees do not stay
    scratch = os.path.realpath(tempfile.mkdtemp(prefix="shapes."))
    programs, different, total = interfaces.Programs(os.path.realpath(given.caisson), scratch), 0, dict.fromkeys(given.interfaces, 0.0)
    try:
        for seed in given.seeds:
            differences, seconds = compare(programs, scratch, seed, given.interfaces, given.keep)
            different += bool(differences)
            for name, value in seconds.items():
                total[name] += value
            if differences:
                print("\n".join(differences), flush=True)
    finally:
        programs.close()
        if not given.keep:
            shutil.rmtree(scratch)
    print(f"{len(given.seeds)} trees from seed {given.seed}: {different} with differences; seconds per tree: "
          + ", ".join(f"{name} {value / len(given.seeds):.2f}" for name, value in total.items()))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
