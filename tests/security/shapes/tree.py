"""Random trees: a workspace `w` and directories `e1`, `e2` beside it, and the flags to show them with."""
import os
import random
import stat
import subprocess

import catalogue
import content

GIT = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/nonexistent", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
       "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}
PLAIN = [b"notes.txt", b"data.json", b"main.c", b"lib.rs", b"page.md", b"run.sh", b"app.py", b"README", b"plainfile", b"deploy-key.dat",
         b"image.png", b"style.css", b"config.yaml", b"values.yaml", b"app.conf", b"Makefile", b"package.json", b"settings.ini",
         b"server.pem", b"server.key", b"ca.crt", b"id_rsa.pub", b"known_hosts", b"api.token", b"db_secret", b"Dockerfile", b"x.log"]
ODD = [b"a\nb", b" ", b"a b ", b"[x]", b"*", b"-rf", b"--deny", b"\xc3\xa4\xe2\x82\xac", b"\xff\xfe", b"\\", b"'q\"", b"$(x)", b"a,b:c",
       b"x" * 120, b"{a}", b"#", b"%2e", b"a\xe2\x80\xaeb", b"CON", b"..a", b"...", b"\x01\x7f"]
DIRECTORIES = [b"src", b"lib", b"docs", b"a", b"b", b"node_modules/left", b"site-packages", b"Backup", b"config"]
PROTECTED = [b".vscode", b".claude", b".github", b".idea", b".cursor", b".devcontainer", b".cargo", b".husky", b".config/fish"]
SECRET = [b".env", b".ENV", b".env.local", b".npmrc", b".aws/credentials", b".AWS/Config", b".config/gcloud/x.json", b".ssh/config",
          b".ssh/id_ed25519", b".netrc", b"id_rsa", b".git-credentials", b"credentials.json", b"terraform.tfstate", b".kube/config",
          b".docker/config.json", b".claude/.credentials.json", b".vscode/sftp.json", b".idea/datasources/x.xml", b".bash_history"]
CLOSED_FILE, CLOSED_DIRECTORY = [0o000, 0o200, 0o100, 0o600, 0o444], [0o000, 0o300, 0o111, 0o100]


class Planted:
    """A file with a canary. `role`: whole, or of a git configuration public or private."""

    def __init__(self, path, kind, role):
        self.path, self.kind, self.role = path, kind, role


class Node:
    def __init__(self, kind, inode, mode, target=None):
        self.kind, self.inode, self.mode, self.target = kind, inode, mode, target


class Tree:
    """Made below `top` from `seed`. `nodes`: every path below top. `planted`: by canary."""

    def __init__(self, top, seed):
        self.top, self.seed, self.pick = os.fsencode(top), seed, random.Random(seed)
        self.planted, self.modes, self.nodes, self.directories = {}, {}, {}, []
        self.included = []  # files that configurations of git include
        self.read_only, self.read_write, self.denied, self.shown = [], [], [], []
        os.mkdir(self.top)
        for root in (b"w", b"e1", b"e2"):
            self.directory(root)
        self.fill()
        self.scan()

    # What the tree is made of.
    def fill(self):
        for _ in range(self.pick.randint(2, 6)):
            self.directory(self.place() + b"/" + self.pick.choice(DIRECTORIES))
        for _ in range(self.pick.randint(0, 2)):
            self.directory(self.place() + b"/" + self.pick.choice(ODD))
        for _ in range(self.pick.randint(0, 2)):
            self.directory(self.place() + b"/" + self.pick.choice(PROTECTED))
        for make, most in ((self.repository, 2), (self.lookalike, 3), (self.plain, 14), (self.secret, 6), (self.catalogued, 8),
                           (self.template, 2), (self.dotfile, 1), (self.odd, 3), (self.hard_link, 4), (self.link, 8), (self.close, 4)):
            for _ in range(self.pick.randint(0, most)):
                make()

    def place(self):
        """A random directory of the tree, mostly of the workspace."""
        top = [one for one in self.directories if one.startswith(b"w")] if self.pick.random() < 0.85 else self.directories
        return self.pick.choice(top)

    def full(self, path):
        return os.path.join(self.top, path)

    def directory(self, path):
        parts = path.split(b"/")
        for length in range(1, len(parts) + 1):
            path = b"/".join(parts[:length])
            try:
                os.mkdir(self.full(path))
            except FileExistsError:
                if not stat.S_ISDIR(os.lstat(self.full(path)).st_mode):
                    return False
            if path not in self.directories:
                self.directories.append(path)
        return True

    def canary(self, path, kind, role="whole"):
        canary = f"canary{self.seed:06d}x{len(self.planted):03d}"
        self.planted[canary] = Planted(path, kind, role)
        return canary

    def write(self, path, kind=None, mode="x"):
        """Makes a file with a canary at `path`, and the directories above; nothing if that is not possible."""
        name = os.fsdecode(path.rpartition(b"/")[2])
        if not self.directory(path.rpartition(b"/")[0]) or os.path.lexists(self.full(path)):
            return
        kind = kind or self.pick.choice(content.kinds_for(name.lower()))
        with open(self.full(path), mode) as file:
            file.write(content.text(self.pick, kind, name, self.canary(path, kind)))

    def git_config(self, path):
        if not self.directory(path.rpartition(b"/")[0]):
            return
        public, secret = self.canary(path, "git", "public"), self.canary(path, "git", "private")
        with open(self.full(path), "a") as file:
            file.write(content.git_config(self.pick, public, secret, path.lower().endswith(b".gitmodules")))

    def git(self, where, *arguments):
        subprocess.run(["git", "-c", "protocol.file.allow=always", *arguments], cwd=self.full(where), env=GIT, check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def repository(self):
        where = self.place() + b"/" + self.pick.choice([b"repo", b"r.git", b"mirror", b"project"])
        if os.path.lexists(self.full(where)) or b"\n" in where:
            return
        self.directory(where)
        if self.pick.random() < 0.3:
            self.git(where, "init", "-q", "--bare", "--template=")
            self.git_config(where + b"/config")
            return
        self.git(where, "init", "-q", "-b", "main", *(["--template="] if self.pick.random() < 0.8 else []))
        self.git(where, "commit", "-q", "--allow-empty", "-m", "begin")
        self.git_config(where + b"/.git/config")
        self.directories.append(where + b"/.git")
        if self.pick.random() < 0.4:
            self.git(where, "worktree", "add", "-q", "-b", "side", self.full(where) + b"-side")
            self.directories.append(where + b"-side")
            self.git_config(where + b"/.git/worktrees/" + os.listdir(self.full(where + b"/.git/worktrees"))[0] + b"/config.worktree")
        if self.pick.random() < 0.3:
            self.directory(where + b".origin")
            self.git(where + b".origin", "init", "-q", "-b", "main", "--template=")
            self.git(where + b".origin", "commit", "-q", "--allow-empty", "-m", "begin")
            self.git(where, "submodule", "add", "-q", self.full(where) + b".origin", "lib")
            self.directories.append(where + b"/lib")
            self.git_config(where + b"/.git/modules/lib/config")
            self.git_config(where + b"/.gitmodules")
        if self.pick.random() < 0.4:
            self.git_config(where + b"/" + self.pick.choice([b".gitmodules", b".lfsconfig", b".gitconfig", b".git/config.bak"]))
        if self.pick.random() < 0.15:
            self.move_config(where + b"/.git/config", where + b"/dotfile.cc")
        included = where + b"/more.inc"
        if self.pick.random() < 0.3 and not os.path.lexists(self.full(included)):
            with open(self.full(where + b"/.git/config"), "a") as file:
                file.write("[include]\n\tpath = ../more.inc\n")
            self.git_config(included)
            self.included.append(included)

    def move_config(self, path, there):
        """Moves a configuration of git away, and makes a link to it in its place."""
        if os.path.lexists(self.full(there)):
            return
        os.rename(self.full(path), self.full(there))
        os.symlink(os.path.relpath(self.full(there), os.path.dirname(self.full(path))), self.full(path))
        for planted in self.planted.values():
            planted.path = there if planted.path == path else planted.path

    def dotfile(self):
        path, there = self.place() + self.pick.choice([b"/.gitconfig", b"/.gitmodules", b"/.lfsconfig"]), self.place() + b"/dotfile.cc"
        if not os.path.lexists(self.full(path)):
            self.git_config(path)
            self.move_config(path, there)

    def lookalike(self):
        """A directory with some of what makes a git directory."""
        where = self.place() + b"/" + self.pick.choice([b"almost", b".git", b".GIT", b"x.git", b"store"])
        if os.path.lexists(self.full(where)):
            return
        self.directory(where)
        for part in (b"HEAD", b"objects", b"refs", b"commondir"):
            if self.pick.random() < 0.75:
                if part in (b"objects", b"refs"):
                    self.directory(where + b"/" + part)
                else:
                    with open(self.full(where + b"/" + part), "w") as file:
                        file.write("ref: refs/heads/main\n" if part == b"HEAD" else "..\n")
        there = set(os.listdir(self.full(where)))
        if b"HEAD" in there and (b"commondir" in there or {b"objects", b"refs"} <= there) or where.lower().endswith(b"/.git"):
            self.git_config(where + b"/config")
        else:
            self.write(where + b"/config")
        for path in (where + b"/notes.txt", where + b"/sub/.env", where + b"/objects/plainfile"):
            if self.pick.random() < 0.6:
                self.write(path)

    def plain(self):
        self.write(self.place() + b"/" + self.pick.choice(PLAIN), "large" if self.pick.random() < 0.03 else None)

    def odd(self):
        self.write(self.place() + b"/" + self.pick.choice(ODD) + self.pick.choice([b".txt", b".c", b".json", b"/.env", b"/id_rsa"]))

    def secret(self):
        self.write(self.place() + b"/" + self.pick.choice(SECRET))

    def template(self):
        name = self.pick.choice([b".env", b"credentials.json", b"config.yaml", b"secrets.yml", b".npmrc", b"id_rsa"])
        self.write(self.place() + b"/" + name + os.fsencode(self.pick.choice(catalogue.TEMPLATES)))

    def catalogued(self):
        """A name or a place of the catalogue, in upper case or as a copy at times."""
        name = self.pick.choice(catalogue.secrets())[0]
        name = "".join(self.pick.choice("qxz") + "7" if letter == "*" else letter for letter in name)
        if name.endswith("/"):
            name += self.pick.choice(["inside", "inside.txt", "deep/inside.json"])
        elif self.pick.random() < 0.15:
            head, _, tail = name.rpartition("/")
            copy = self.pick.choice(["{}~", "{}.bak", "{}.old", "{}.2024-01-01", ".{}.swp"]).format(tail)
            name = f"{head}/{copy}" if head else copy
        if self.pick.random() < 0.15:
            name = name.upper()
        self.write(self.place() + b"/" + name.encode())

    def files(self):
        return [one.path for one in self.planted.values()]

    def hard_link(self):
        if not self.planted:
            return
        there = self.pick.choice(self.files())
        name = self.pick.choice([b"copy.txt", b"copy.c", b"other", b"linked.json", b".env", b".env.example", b"\xffcopy"])
        path = self.place() + b"/" + name
        if not os.path.lexists(self.full(path)):
            os.link(self.full(there), self.full(path), follow_symlinks=False)

    def link(self):
        """A link to a file, a directory, another link, or nothing; relative, or absolute on the host or inside."""
        path = self.place() + b"/" + self.pick.choice([b"link", b"link.txt", b".env", b"id_rsa", b".vscode", b".ssh", b"current", b".npmrc",
                                                      b"CLAUDE.md", b".env.example", b".aws", b"l\n"])
        links = [one for one, node in self.nodes.items() if node.kind == "link"]
        target = self.pick.choice(self.files() + self.directories + links * 2 + [b"w/missing", b"../../etc/hostname"])
        if os.path.lexists(self.full(path)) or target.startswith(path + b"/"):
            return
        form = self.pick.random()
        if form < 0.7:
            text = os.path.relpath(self.full(target), os.path.dirname(self.full(path)))
        else:
            text = self.full(target) if form < 0.9 or not target.startswith(b"w/") else b"/workspace/" + target[2:]
        os.symlink(text, self.full(path))
        self.nodes[path] = Node("link", 0, 0)

    def close(self):
        """Changes the mode of a file or a directory; that of git's own files stays."""
        if self.pick.random() < 0.6 and self.planted:
            planted = self.pick.choice(list(self.planted.values()))
            if planted.kind != "git":
                self.modes[planted.path] = self.pick.choice(CLOSED_FILE)
            return
        path = self.pick.choice(self.directories)
        if b"/" in path:
            self.modes[path] = self.pick.choice(CLOSED_DIRECTORY)

    def scan(self):
        """Records what is there, and then sets the modes."""
        self.nodes = {}
        for directory, names, files in os.walk(self.top):
            for name in names + files:
                full = os.path.join(directory, name)
                path, info = os.path.relpath(full, self.top), os.lstat(full)
                kind = "link" if stat.S_ISLNK(info.st_mode) else "directory" if stat.S_ISDIR(info.st_mode) else "file"
                mode = self.modes.get(path, stat.S_IMODE(info.st_mode))
                self.nodes[path] = Node(kind, info.st_ino, mode, os.readlink(full) if kind == "link" else None)
        closed = {node.inode: self.modes[path] for path, node in self.nodes.items() if path in self.modes and node.kind == "file"}
        for node in self.nodes.values():
            node.mode = closed.get(node.inode, node.mode) if node.kind == "file" else node.mode
        self.restore_modes()

    def restore_modes(self):
        """Sets the modes of the beginning again, which a payload may have changed where it can write."""
        some = sorted((path, node) for path, node in self.nodes.items() if node.kind != "link")
        for path, node in some:
            if node.kind == "directory":
                os.chmod(self.full(path), 0o700)
        for path, node in reversed(some):
            os.chmod(self.full(path), node.mode)

    def remove(self):
        for path, node in sorted(self.nodes.items()):
            if node.kind == "directory":
                os.chmod(self.full(path), 0o700)
        subprocess.run(["rm", "-rf", "--", self.top], check=True)
