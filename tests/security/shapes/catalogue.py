"""The tables of docs/secret-files.md and docs/protected-files.md, read from the documents."""
import pathlib
import re

DOCS = pathlib.Path(__file__).resolve().parent.parent.parent.parent / "docs"
RULES = ("always", "keys", "settings", "settings, or one value", "unless public", "never")
TEMPLATES = (".example", ".sample", ".template", ".tmpl", ".tpl", ".dist", ".j2", ".jinja", ".erb")


def table(document, columns):
    """Yields the cells of the rows of `document` that have this number of columns."""
    for line in (DOCS / document).read_text().splitlines():
        cells = line.strip("| ").split(" | ")
        if line.startswith("| ") and len(cells) == columns:
            yield cells


def expression(pattern):
    """The regular expression of the paths that a pattern such as `.aws/credentials*` matches, at every depth."""
    return re.compile("(?s:.*/)?" + re.escape(pattern).replace(r"\*", "[^/]*"), re.S)


class Patterns:
    """An ordered list of (pattern, rule). Exact names come before those with `*`; the first match decides.
    Paths are lists of parts in lower case."""

    def __init__(self, rows):
        self.files, self.directories = [], []
        for pattern, rule in sorted(rows, key=lambda row: "*" in row[0]):
            (self.directories if pattern.endswith("/") else self.files).append((expression(pattern.rstrip("/")), rule))
        self.known = {}

    def first(self, rows, parts):
        path = "/".join(parts)
        key = (rows is self.files, path)
        if key not in self.known:
            self.known[key] = next((rule for wanted, rule in rows if wanted.fullmatch(path)), None)
        return self.known[key]

    def file(self, parts):
        return self.first(self.files, parts)

    def directory(self, parts):
        return self.first(self.directories, parts)


def secrets():
    """Returns (pattern, rule) of the catalogue, in its order."""
    return [(name, rule) for _, rule, names in (row for row in table("secret-files.md", 3) if row[1] in RULES)
            for name in re.findall(r"`([^`]+)`", names)]


def protected():
    """Returns the patterns of files that the host would execute."""
    return [(name, True) for _, what, names in table("protected-files.md", 3) if what != "what the host does"
            for name in re.findall(r"`([^`]+)`", names)]


def lower(path):
    """The parts of a path (bytes) as catalogues compare them."""
    return [part.decode("utf-8", "surrogateescape").lower() for part in path.split(b"/") if part]


def original(name):
    """The name without what marks a copy: .bak, ~, .old, .swp, (1), a date. Lower case."""
    swap = re.fullmatch(r"\.(.+)\.swp", name, re.S)
    if swap:
        return swap[1]
    stripped = re.sub(r"(~|\.bak|\.old|\.\d{4}-\d\d-\d\d)$", "", name)
    return re.sub(r" \(\d+\)(?=\.[a-z0-9]+$|$)", "", stripped)


def is_template(name):
    return name.lower().endswith(TEMPLATES)
