#!/usr/bin/env python3
"""notice.py BUILD VERSION OUTPUT: writes the licences of everything that the programs in BUILD contain.

The texts are the copyright files of the linked Debian packages, and the licences that they refer to.
"""
import pathlib
import re
import sys

from components import collect

COMMON = pathlib.Path("/usr/share/common-licenses")
RULE = "=" * 100


def main(build, version, output):
    programs, packages = collect(build)
    sources = {}  # source package -> {"how": ..., "programs": ..., "facts": ...}
    for program, uses in programs.items():
        for package, how in uses.items():
            if how == "dynamic":
                continue
            facts = packages.facts(package)
            entry = sources.setdefault(facts["source"], {"facts": facts, "how": {}})
            if how == "static" or program not in entry["how"]:
                entry["how"][program] = how
    lines = [f"caisson {version} is licensed under the Apache License 2.0 (LICENSE).", "",
             "Its programs contain code of the following software. `static`: object code of its library; `header`: code",
             "of its headers only. The licences follow in the same order, as Debian records them; these files also cover",
             "parts that are not in the programs, such as tests and build scripts. To use other versions of the libraries,",
             "build caisson from its source.", ""]
    for source, entry in sorted(sources.items()):
        facts = entry["facts"]
        lines.append(f"{source} {facts['version']}: {facts['licence']}")
        for how in ("static", "header"):
            named = sorted(program for program, kind in entry["how"].items() if kind == how)
            if named:
                lines.append(f"    {how}: {' '.join(named)}")
    common = set()
    for source, entry in sorted(sources.items()):
        text = pathlib.Path(entry["facts"]["copyright_file"]).read_text(errors="replace")
        common |= set(re.findall(r"/usr/share/common-licenses/([A-Za-z0-9.-]*[A-Za-z0-9])", text))
        lines += ["", RULE, f"{source} {entry['facts']['version']}", RULE, "", text.rstrip()]
    for name in sorted(common):
        if (COMMON / name).is_file():
            lines += ["", RULE, f"Licence text {name}", RULE, "", (COMMON / name).read_text(errors="replace").rstrip()]
    pathlib.Path(output).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
