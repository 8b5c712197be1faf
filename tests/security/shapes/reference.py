"""What docs/workspace.md, docs/secret-files.md and docs/protected-files.md promise about a tree. Nothing here is from the
source of caisson: a difference is an error of the documents or of the program."""
import fnmatch
import os
import re

import catalogue
import content

SECRETS = catalogue.Patterns(catalogue.secrets())
PROTECTED = catalogue.Patterns(catalogue.protected())
CODE_OF_OTHERS = ("node_modules", "bower_components", "site-packages", "dist-packages")
IN_PACKAGES = {"private_key", "token", "large"}  # settings of packages are public
GIT_FILES = (".gitmodules", ".gitconfig", ".lfsconfig")
LINKS = 40  # a chain of more links is an error, as in the kernel


def is_ordinary(tree, path):
    """Whether a directory can be named by --ro and --rw without further rules: not secret, protected, closed or of git."""
    for number in range(len(path.split(b"/"))):
        above = b"/".join(path.split(b"/")[:number + 1])
        node, parts = tree.nodes[above], catalogue.lower(above)
        if node.mode & 0o700 != 0o700 or SECRETS.directory(parts) or PROTECTED.directory(parts) or PROTECTED.file(parts):
            return False
        if parts[-1] == ".git" or is_git_directory(tree, above):
            return False
    return True


def can_be_shown(tree, path):
    """Whether --show-file of this path shows one file and nothing else: a secret by its own name, with one name."""
    node, parts = tree.nodes[path], catalogue.lower(path)
    return (path.startswith(b"w/") and rule_of(parts) == "always" and not in_hidden_directory(parts) and node.mode & 0o400
            and sum(other.inode == node.inode for other in tree.nodes.values()) == 1
            and not any(other.kind == "link" and resolve(tree, one) == path for one, other in tree.nodes.items()))


def is_git_directory(tree, path):
    there = {name: tree.nodes.get(path + b"/" + name) for name in (b"HEAD", b"objects", b"refs", b"commondir")}
    return bool(there[b"HEAD"] and (there[b"commondir"] or (there[b"objects"] and there[b"refs"])))


def is_executed(tree, path):
    """Whether the host may execute a file: by the table, as a part of a repository, or through a link."""
    parts = path.split(b"/")
    leads = [resolve(tree, one) for one, node in tree.nodes.items() if node.kind == "link"]
    for number in range(1, len(parts) + 1):
        above = b"/".join(parts[:number])
        lower = catalogue.lower(above)
        if PROTECTED.directory(lower) or PROTECTED.file(lower) or lower[-1] == ".git" or above in leads or is_git_directory(tree, above):
            return True
    return False


def in_hidden_directory(parts):
    return any(SECRETS.directory(parts[:number]) == "always" for number in range(1, len(parts)))


def rule_of(parts):
    """The catalogue's rule for a file, None if no row names it."""
    if catalogue.is_template(parts[-1]):
        return "never"
    return SECRETS.file(parts) or SECRETS.file(parts[:-1] + [catalogue.original(parts[-1])])


def suggests(name):
    """What of a name in lower case suggests its content, if anything: a word or the ending."""
    return "word" if set(re.split(r"[^a-z]+", name)) & {"key", "cert", "secret", "token"} else "ending" if "." in name else None


def reading_of(parts):
    """How the content of a file that no row names is judged: `keys` is read to the end, others are if they are small."""
    if any(part in CODE_OF_OTHERS for part in parts[:-1]):
        return None
    name = parts[-1]
    if "." not in name or suggests(name) == "word":
        return "keys"
    return "beginning" if content.ending(name) in content.CONFIGURATIONS else "script" if content.ending(name) in content.SCRIPTS else None


def is_git_config(tree, path):
    parts = catalogue.lower(path)
    name = catalogue.original(parts[-1])
    if name in GIT_FILES or path in tree.included:
        return True
    above = path.rpartition(b"/")[0]
    return name in ("config", "config.worktree") and (parts[-2] == ".git" or is_git_directory(tree, above))


def resolve(tree, path, root=b"", depth=0):
    """The path below the tree's top that a path of the host leads to, without links; None if it leads nowhere, or out of
    `root` on the way."""
    done = []
    parts = path.split(b"/")
    for number, part in enumerate(parts):
        if part in (b"", b"."):
            continue
        if part == b"..":
            if not done:
                return None
            done.pop()
            continue
        here = b"/".join(done + [part])
        node = tree.nodes.get(here)
        above = tree.nodes.get(b"/".join(done))
        if node is None or not here.startswith(root) or (above is not None and not (above.mode & 0o100) and os.geteuid() != 0):
            return None
        if node.kind == "link":
            target = in_tree(tree, node.target, b"/".join(done))
            if target is None or depth > LINKS:
                return None
            return resolve(tree, target + b"/" + b"/".join(parts[number + 1:]), root, depth + 1)
        done.append(part)
    return b"/".join(done) if b"/".join(done) in tree.nodes else None


def in_tree(tree, path, directory=b"w"):
    """A path of the host, or one inside /workspace if `directory` is the workspace, as a path below the tree's top."""
    if path.startswith(tree.top + b"/"):
        return path[len(tree.top) + 1:]
    if path.startswith(b"/workspace/") and directory == b"w":
        return b"w/" + path[len(b"/workspace/"):]
    return None if path.startswith(b"/") else directory + b"/" + path


class View:
    """A tree as a sandbox shows it. `mode`: overlay, ro or rw. `named`: with the --ro and --rw directories."""

    def __init__(self, tree, mode, denied):
        self.tree, self.mode = tree, mode
        self.roots = [b"w"] + [path for path in tree.read_only + tree.read_write if not path.startswith(b"w/")]
        self.closed = {path for path, node in tree.nodes.items() if node.kind == "directory" and node.mode & 0o500 != 0o500
                       and os.geteuid() != 0}
        self.denied = set().union(*(self.denied_by(entry) for entry in denied)) if denied else set()
        self.secret = self.find_secrets()
        self.kinds = {tree.nodes[one.path].inode: one.kind for one in tree.planted.values()}

    def below(self, path, some):
        parts = path.split(b"/")
        return any(b"/".join(parts[:number]) in some for number in range(1, len(parts) + 1))

    def denied_by(self, entry):
        """The paths that an entry of --deny names; each part is a name and a pattern."""
        found = {b"w"}
        path = in_tree(self.tree, entry)
        if path is not None and not path.startswith(b"w/"):
            return {path}
        for part in path[2:].split(b"/"):
            following = {resolve(self.tree, one) for one in found}
            found = {one for one, node in self.tree.nodes.items()
                     if one.rpartition(b"/")[0] in following
                     and (one.rpartition(b"/")[2] == part or fnmatch.fnmatchcase(one.rpartition(b"/")[2], part))}
        return found

    def searched(self, path):
        return path.partition(b"/")[0] in self.roots and not self.below(path.rpartition(b"/")[0], self.closed)

    def find_secrets(self):
        """Returns why files are secret by one of their names, or by a link that leads to them, in the same root: the
        reason by root and inode."""
        tree, found = self.tree, {}
        kinds = {tree.nodes[one.path].inode: one.kind for one in tree.planted.values()}
        for path, node in tree.nodes.items():
            root = path.partition(b"/")[0]
            if not self.searched(path) or path in tree.shown or node.kind == "directory":
                continue
            target = resolve(tree, path, root) if node.kind == "link" else path
            file = tree.nodes.get(target) if target else None
            if file is None or file.kind != "file" or (node.kind == "link" and catalogue.is_template(os.fsdecode(target))):
                continue
            reason = self.judge(path, file, kinds.get(file.inode), node.kind == "link")
            if reason:
                found.setdefault((root, file.inode), f"{node.kind} {os.fsdecode(path)!r}: {reason}")
        return found

    def judge(self, path, node, kind, is_link):
        """Why a file is hidden by this name of it, or None. A link to it is a name, if its name suggests a kind."""
        parts = catalogue.lower(self.tree.full(path))
        if in_hidden_directory(parts):
            return "in a hidden directory"
        rule = rule_of(parts)
        if rule == "always":
            return "by its name"
        if rule == "never" or is_git_config(self.tree, path):
            return None
        rule = rule or (None if is_link and not suggests(parts[-1]) else reading_of(parts))
        if rule and not node.mode & 0o400 and os.geteuid() != 0:
            return "closed, and its content would decide"
        if rule == "unless public" and kind != "certificate":
            return "not public"
        hides = content.HIDES.get(rule, set())
        if rule != "unless public" and any(part in CODE_OF_OTHERS for part in parts[:-1]):
            hides = hides & IN_PACKAGES
        return f"its content ({kind})" if kind in hides else None

    def writable(self, path):
        """Whether a program can change the mode of what is at this path of the tree."""
        rules = [(b"w", self.mode != "ro")] + [(one, False) for one in self.tree.read_only] + [(one, True) for one in self.tree.read_write]
        deepest = max(((len(one), not writes) for one, writes in rules if path.startswith(one + b"/")), default=(0, True))
        return deepest[1] is False

    def direct(self, path):
        return self.writable(path) and (self.mode == "rw" or any(path.startswith(one + b"/") for one in self.tree.read_write))

    def readable_by_mode(self, path, listed=False):
        """Whether the modes of a file and the directories above let their owner read it. `listed`: by listing these."""
        parts = path.split(b"/")
        wanted = 0o500 if listed else 0o100
        return self.tree.nodes[path].mode & 0o400 and all(
            self.tree.nodes[b"/".join(parts[:number])].mode & wanted == wanted for number in range(1, len(parts)))

    def hidden_name(self, path, chmod, listed):
        """Why a name of a file does not show its content, or None."""
        if not self.searched(path):
            return "not shown, or in a closed directory"
        secret = self.secret.get((path.partition(b"/")[0], self.tree.nodes[path].inode))
        if secret:
            return secret
        if self.below(path, self.denied):
            return "denied"
        if not self.readable_by_mode(path, listed) and not (chmod and self.writable(path)):
            return "its mode"
        return None

    def unspecified(self, canary):
        """Whether the documents do not say if a canary is readable."""
        planted = self.tree.planted[canary]
        parts = catalogue.lower(planted.path)
        # A file in a repository that is called like a configuration, with other content.
        above = [planted.path[:n] for n, letter in enumerate(planted.path) if letter == ord("/")]
        in_repository = ".git" in parts or any(is_git_directory(self.tree, one) for one in above)
        if planted.kind != "git" and in_repository and parts[-1].startswith("config"):
            return True
        # What the host may execute is read-only where a program writes directly: its mode stays.
        names = [path for path, node in self.tree.nodes.items() if node.inode == self.tree.nodes[planted.path].inode]
        if any(self.direct(path) and not self.readable_by_mode(path) and is_executed(self.tree, path) for path in names):
            return True
        # What includes it is not searched.
        if planted.path in self.tree.included and not self.searched(planted.path.rpartition(b"/")[0] + b"/.git/config"):
            return True
        # Root searches a directory that is closed to its owner; the mode that it has inside is not specified.
        if os.geteuid() == 0 and any(not self.readable_by_mode(path, listed=True) for path in names):
            return True
        if planted.kind != "git":
            return False
        # A configuration of git that has another name, as a hard link or through a link, whose content may decide; and
        # a private value in it that has a name in another root.
        if len(names) > 1 and (planted.role == "public" or len({path.partition(b"/")[0] for path in names}) > 1):
            return True
        links = [path for path, node in self.tree.nodes.items()
                 if node.kind == "link" and self.searched(path) and resolve(self.tree, path) == planted.path]
        if not any(is_git_config(self.tree, path) and self.searched(path) for path in names + links):
            return True
        rules = [rule_of(catalogue.lower(path)) or reading_of(catalogue.lower(path)) for path in links]
        return any(rule not in (None, "always", "never") for rule in rules)

    def readable(self, canary, chmod=True, below=b"", listed=False):
        """Whether a canary can be read by a path below `below`, and the reason. `chmod`: after chmod -R u+rwX. `listed`: by
        listing the directories above."""
        planted = self.tree.planted[canary]
        inode = self.tree.nodes[planted.path].inode
        if planted.role == "private":
            return False, "git configuration: not a known value"
        names = [path for path, node in self.tree.nodes.items() if node.inode == inode and node.kind == "file" and path.startswith(below)]
        reasons = {path: self.hidden_name(path, chmod, listed) for path in names}
        if any(reason is None for reason in reasons.values()):
            return True, "ordinary"
        return False, "; ".join(f"{os.fsdecode(path)!r}: {reason}" for path, reason in reasons.items())
