"""Random flags for a tree: --ro and --rw directories, denied paths, shown files."""
import os

import catalogue
import reference


def choose(tree):
    """Sets `read_only`, `read_write`, `denied` and `shown` of a tree. Paths are relative to the tree's top."""
    pick = tree.pick
    for directory in (b"e1", b"e2"):
        if pick.random() < 0.5:
            (tree.read_only if pick.random() < 0.6 else tree.read_write).append(directory)
    directories = [path for path, node in tree.nodes.items() if node.kind == "directory" and path.startswith(b"w/")]
    ordinary = [path for path in directories if is_plain(path) and reference.is_ordinary(tree, path)]
    if ordinary and pick.random() < 0.4:
        (tree.read_only if pick.random() < 0.6 else tree.read_write).append(pick.choice(sorted(ordinary)))
    if pick.random() < 0.5:
        tree.denied = [one for one in (deny(tree) for _ in range(pick.randint(1, 3))) if is_accepted(tree, one)]
    if any(path.startswith(b"w/") for path in tree.read_write):
        tree.denied = for_direct_writes(tree)
    if pick.random() < 0.15:
        shown = [one.path for one in tree.planted.values()
                 if reference.can_be_shown(tree, one.path) and is_plain(one.path)]
        tree.shown = [pick.choice(shown)] if shown else []


def deny(tree):
    """A path to deny: by name, with a pattern, absolute inside or on the host, or one that is not there."""
    pick = tree.pick
    path = pick.choice(sorted(path for path in tree.nodes if b"/" in path))
    if path.startswith(b"e") or pick.random() < 0.15:
        return tree.full(path)
    parts = path[2:].split(b"/")
    form = pick.random()
    if form < 0.4:
        number = pick.randrange(len(parts))
        name = parts[number]
        stem = name.rpartition(b".")
        letter = b"[" + name[:1] + b"]" + name[1:] if name[:1].isalnum() else b"*"
        parts[number] = pick.choice([b"*", b"*." + stem[2] if stem[1] else b"*", name[:1] + b"*", letter])
    path = b"/".join(parts)
    return b"/workspace/" + path if pick.random() < 0.2 or path[:1] in (b"/", b"-") else path


def has_controls(path):
    """Whether a path has control characters, which flags do not accept."""
    return any(letter < 32 or letter == 127 for letter in path)


def is_text(path):
    """Whether a path is UTF-8."""
    try:
        path.decode()
        return True
    except UnicodeDecodeError:
        return False


def is_plain(path):
    """Whether a path can be named in every interface; a policy in JSON has no other bytes."""
    return is_text(path) and not has_controls(path)


def is_accepted(tree, entry):
    """Whether --deny accepts an entry: no control characters, and no link in a path that it names."""
    named = reference.View(tree, "overlay", []).denied_by(entry)
    above = {path[:n] for path in named for n, letter in enumerate(path + b"/") if letter == ord("/")}
    literal = reference.in_tree(tree, entry) + b"/"
    above |= {literal[:n] for n, letter in enumerate(literal) if letter == ord("/") and not is_pattern(literal[:n])}
    return not has_controls(entry) and all(one not in tree.nodes or tree.nodes[one].kind != "link" for one in above)


def is_pattern(entry):
    return any(letter in entry for letter in b"*?[]\\")


def for_direct_writes(tree):
    """The denied paths that `rw` accepts: no patterns, none through a link, and none in what is not shown."""
    kept = {}
    for entry in tree.denied:
        path = reference.in_tree(tree, entry)
        above = [path[:n] for n, letter in enumerate(path) if letter == ord("/")]
        there = tree.nodes.get(path)
        shown = all(can_be_above(tree.nodes.get(one)) for one in above) and not reference.in_hidden_directory(catalogue.lower(path))
        if not is_pattern(entry) and there and there.kind != "link" and shown:
            kept[entry] = path
    return [entry for entry, path in kept.items() if not any(path.startswith(other + b"/") for other in kept.values())]


def can_be_above(node):
    """Whether a denied path below this node can be named in `rw`: not through a link, nor in what is not shown."""
    return node is not None and node.kind == "directory" and node.mode & 0o500 == 0o500


def arguments(tree, denied):
    """The flags of a command line."""
    some = []
    for flag, paths in (("--ro", tree.read_only), ("--rw", tree.read_write)):
        for path in paths:
            some += [flag, tree.full(path)]
    for path in denied:
        some.append(b"--deny=" + path)
    for path in tree.shown:
        some.append(b"--show-file=/workspace/" + path[2:])
    return [os.fsencode(one) for one in some]
