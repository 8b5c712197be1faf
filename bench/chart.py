#!/usr/bin/env python3
"""chart.py RESULTS.json OUT.svg: draws the launch times of `true` as bars, from the output of `bench --json`.

The results of a noisy run are not drawn.
"""
import html
import json
import re
import sys

SHOWN = ["fork+exec", "floor", "caisson full", "bubblewrap", "bubblewrap, same mounts", "firejail", "runc", "crun", "podman"]
WHAT = {  # the text below each name
    "fork+exec": "no isolation",
    "floor": "the kernel's price of these namespaces and mounts",
    "caisson full": "everything on: seccomp, Landlock, limits, audit",
    "bubblewrap": "no seccomp, Landlock, limits or /etc",
    "bubblewrap, same mounts": "no seccomp, Landlock or limits",
}
WIDTH, LABEL, BAR, ROW, TOP = 860, 330, 330, 42, 50

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .quiet { fill: #6e7781 } .small { font-size: 11px } .head { font-weight: 600; font-size: 14px }
  .bar { fill: #afb8c1 } .ours { fill: #0969da }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .quiet { fill: #8b949e } .bar { fill: #484f58 } .ours { fill: #4493f8 }
  }
"""


def bars(results):
    measured = {one["name"]: one for one in results["launch_ms"] if one["summary"]}
    rows = [(name, measured[name]["summary"]["median"], measured[name]["to_floor"]) for name in SHOWN if name in measured]
    return sorted(rows, key=lambda row: row[1])


def host(results):
    """Returns the host line with a shortened kernel version and without the uid."""
    return re.sub(r"^(\w+ \d+\.\d+)\S*(.*), uid \d+ \(([^)]*)\)$", r"\1\2, \3", results["host"])


def draw(results):
    rows = bars(results)
    if not rows:
        sys.exit("chart.py: no launches were measured")
    longest = max(ms for _, ms, _ in rows)
    height = TOP + ROW * len(rows) + 14
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-label="One launch of true in milliseconds">',
        f"<style>{STYLE}</style>",
        '<text class="head" x="0" y="16">One launch of `true`, milliseconds (median)</text>',
        f'<text class="quiet" x="0" y="34">{html.escape(host(results))}</text>',
    ]
    for index, (name, ms, ratio) in enumerate(rows):
        y = TOP + ROW * index
        width = max(2, BAR * ms / longest)
        kind = "bar ours" if name.startswith("caisson") else "bar"
        parts += [
            f'<text x="0" y="{y + 15}">{html.escape(name)}</text>',
            f'<text class="quiet small" x="0" y="{y + 30}">{html.escape(WHAT.get(name, ""))}</text>',
            f'<rect class="{kind}" x="{LABEL}" y="{y + 5}" width="{width:.0f}" height="22" rx="3"/>',
            f'<text x="{LABEL + width + 8:.0f}" y="{y + 21}">{ms:.2f} '
            f'<tspan class="quiet">{ratio:.2f}x the floor</tspan></text>',
        ]
    return "\n".join(parts) + "\n</svg>\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    with open(sys.argv[1], encoding="utf-8") as file:
        results = json.load(file)
    if results["noisy"]:
        sys.exit(f"chart.py: not drawn, the run was noisy: {results['noisy']}")
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(draw(results))


if __name__ == "__main__":
    main()
