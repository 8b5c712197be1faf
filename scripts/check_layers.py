#!/usr/bin/env python3
"""check_layers.py [ROOT]: checks that a folder of src/ includes only itself, folders before it, and public headers.

The order is read from src/CMakeLists.txt, so the build and this check always agree. Public headers (include/caisson/)
include only each other and the standard library, because users get no other headers. The table of subfolders in
docs/architecture.md must match the subfolders of src/.
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
ORDER = re.compile(r"foreach\(layer\s+([a-z_ \n]+)\)")


def layer_order(root):
    match = ORDER.search((root / "src/CMakeLists.txt").read_text())
    if not match:
        sys.exit("check_layers: src/CMakeLists.txt has no `foreach(layer ...)` to read the order from")
    return match.group(1).split()


def includes(path):
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def sources(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in (".h", ".cc", ".c", ".inc"))


def check_layer_files(root, order):
    for path in sources(root / "src"):
        layer = path.relative_to(root / "src").parts[0]
        if layer not in order:
            yield f"{path.relative_to(root)}: folder `{layer}` is not in the order of src/CMakeLists.txt"
            continue
        for number, kind, name in includes(path):
            target = name.split("/")[0]
            where = f"{path.relative_to(root)}:{number}"
            ours = kind == '"' or (root / "src" / name).exists()  # <sys/stat.h> is a system header, not the layer sys
            if ours and target in order and order.index(target) > order.index(layer):
                yield f"{where}: `{layer}` is below `{target}` and may not include {name}"
            elif name.endswith(".inc"):
                continue  # generated into the build directory
            elif path.name.endswith("_test.cc") and (root / "tests" / name).exists():
                continue  # unit tests may use tests/support
            elif kind == '"' and not (root / "src" / name).exists() and not (root / "include" / name).exists():
                yield f'{where}: "{name}" is not a file of src/ or include/; use a path from src/, or <> for a library'


def check_public_headers(root):
    for path in sources(root / "include"):
        for number, kind, name in includes(path):
            if kind == '"' and not name.startswith("caisson/"):
                yield f"{path.relative_to(root)}:{number}: a public header may not include the internal {name}"
            elif kind == "<" and ("/" in name or name.endswith(".h")):
                yield f"{path.relative_to(root)}:{number}: a public header may include only the standard library, not {name}"


def check_subfolder_table(root):
    """Compares rows `| `folder`, ... | `subfolder`: text; `subfolder` |` of docs/architecture.md with src/.

    A folder without a row must not have subfolders.
    """
    listed, in_table = {}, False
    for line in (root / "docs/architecture.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells == ["folder", "subfolders"]:
            in_table = True
        elif not line.startswith("|"):
            in_table = False
        elif in_table and len(cells) == 2:
            for folder in re.findall(r"`(\w+)`", cells[0]):
                if folder in listed:
                    yield f"docs/architecture.md: `{folder}` has two rows in the table of subfolders"
                listed[folder] = set(re.findall(r"(?:^|; )`(\w+)`", cells[1]))
    if not listed:
        yield "docs/architecture.md has no table of subfolders"
    for folder in sorted(path for path in (root / "src").iterdir() if path.is_dir()):
        present = {path.name for path in folder.iterdir() if path.is_dir()}
        table = listed.pop(folder.name, set())
        for name in sorted(present - table):
            yield f"docs/architecture.md: the table of subfolders lacks `{name}` of src/{folder.name}"
        for name in sorted(table - present):
            yield f"docs/architecture.md: src/{folder.name}/{name} does not exist"
    for folder in sorted(listed):
        yield f"docs/architecture.md: src/{folder} does not exist"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    order = layer_order(root)
    problems = [*check_layer_files(root, order), *check_public_headers(root), *check_subfolder_table(root)]
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(f"layers: {' < '.join(order)}: no layer includes a higher one")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
