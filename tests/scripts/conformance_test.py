#!/usr/bin/env python3
"""conformance_test.py [ROOT]: every test that docs/conformance.md names exists, every row says something, and every
numbered item of the source documents has a row."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
TEST = re.compile(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", re.M)
NAME = re.compile(r"`(\w+\.\w+)`")


def known_tests(root):
    return {
        f"{suite}.{case}"
        for folder in ("src", "tests")
        for path in (root / folder).rglob("*.cc")
        for suite, case in TEST.findall(path.read_text(errors="replace"))
    }


# Rows of tables, items of lists and single MUSTs, by the words that begin them in docs/conformance.md.
LISTED = {
    "000": """Tools by default: read; Tools by default: web_fetch; Tools by default: bash; Network mode 1;
        Network mode 2; Network mode 3; MUST resolve and validate; MUST re-validate on redirects; Level none only;
        Level process: environment; Level process: path; Level process: working directory; Selection; Proxy: hosts;
        Proxy: localhost; Proxy: private; Proxy: requests; Container limit: CPU; Container limit: memory;
        Container limit: disk; Container limit: time; Container limit: processes; Container limit: open files;
        Process limit: time; Process limit: output; Process limit: memory; Template: cap_drop; Template: pids;
        Template: workspace; Template: user; Template: private; Template: seccomp; Hardening: seccomp;
        Hardening: AppArmor; Hardening: SELinux; Hardening: rootless; Network-use detection;
        Base, node, python and rust images; Audit: command hash; Audit actions: sandbox_execute;
        Audit actions: proxy_request; Guarantee: no network; Guarantee: private; Guarantee: capabilities;
        Guarantee: the workspace; Advisory; Execution flow; User configuration; Docker network""",
    "001": """Threat: malicious; Threat: accidental; Threat: resource; Threat: data; Threat: privilege; Mandatory;
        SHOULD 1; SHOULD 2; SHOULD 3; SHOULD 4; Control: read-only; Control: capabilities; Control: no-new;
        Control: process; Control: memory; Control: CPU; Control: non-root; Control: setuid; Path `/`; Path `/etc`;
        Path `/workspace`; Path `/tmp`; Path `/home/sandbox`; Path `/var/tmp`; Path `/run`; Path `/root`;
        Network `none`; Network `bridge`; `dns_servers`; `http_proxy`; Runtime `runc`; Runtime `runsc`;
        Verification; Prompt `rm; Prompt `sudo; Prompt fork; Prompt memory; Incident 1; Incident 2; Incident 3;
        Incident 4; Future: seccomp; Future: AppArmor; Future: network; Future: per-command; Future: audit;
        Future: image""",
    "002": """3.1.1; 3.1.2; 3.1.3; 3.2; 4.1.1; 4.1.2; 4.1.3; 4.1.4; 4.1.5; 4.2.1; 4.2.2; 4.2.3; 4.2.4; 4.2.5;
        4.3.1; 4.3.2; 4.3.3; 4.3.4; 5.1.1; 5.1.2; 5.1.3; 5.1.4; 5.2.1; 5.2.2; 5.2.3; 5.2.4; 5.3.1; 5.3.2; 5.3.3;
        5.3.4; 6.1.1; 6.1.2; 6.1.3; 6.1.4; 6.2; 6.3.1; 6.3.2; 6.3.3; 6.3.4; 7.1 CPU time; 7.1 CPU throttling; 7.2;
        7.3 descriptors; 7.3 I/O; 8.1.1; 8.1.3; 8.1.4; 8.2 ptrace; 8.2 mount; 8.2 clone; 8.3 blocked; 8.3.3;
        8.3 repeated; 9.1 indicator FILESYSTEM; 9.1 indicator PROCESS; 9.1 indicator NETWORK;
        9.1 indicator SYSCALL; 9.2.1; 9.2.2; 9.2.3; 9.2.4; 9.2.5; 9.3 path; 9.3 links; 9.3 process; 9.3 network;
        9.3 seccomp; 9.3 resource; 9.3 capabilities; 9.3 mount; 10.1; 10.2; 10.3; 11.1 SANDBOX_CREATED;
        11.1 POLICY_VIOLATION; 11.1 ESCAPE_ATTEMPT; 11.2.1; 11.2.2; 12.1 all; 12.1 filesystem; 12.1 process;
        12.1 network; 12.1 resource; 12.1 seccomp; 12.1 escape; 12.1 audit; 12.2 path; 12.2 symlink; 12.2 process;
        12.2 network; 12.2 privilege; 12.2 resource; 12.2 dangerous; 12.3; 13.1 Linux: namespaces;
        13.1 Linux: cgroups; 13.2; Appendix A""",
    "003": """MUST: the order; 4.20 CVE-2017-5226; 4.20 CVE-2024-1086; 4.20 CVE-2023-2640; 4.20 CVE-2025-31133;
        Acceptance 0: unsupported; Acceptance 0: the server; Acceptance 1: `echo; Acceptance 1: PID;
        Acceptance 1: network; Acceptance 1: IPC; Acceptance 2: session; Acceptance 2: writes; Acceptance 2: /proc;
        Acceptance 2: ~/.ssh; Acceptance 2: sessions; Acceptance 3: create; Acceptance 3: expired;
        Acceptance 3: concurrent; Acceptance 4: TIOCSTI; Acceptance 4: credential; Acceptance 4: external;
        Acceptance 4: empty; Acceptance 4: blocked; Acceptance 4: abstract; Acceptance 4: /proc/self/fd;
        Acceptance 4: fork; Acceptance 5: clear; Acceptance 5: the server; Security rules""",
    "004": """Directory workspace; Directory cargo-home; Directory target; Directory logs; Directory metadata;
        Directories are private; Size: target; Size: logs; Size: temporary; Size: workspace; Limit cpu_time;
        Limit memory; Limit processes; Network: none; Network: blocked; Network: allowed ports; Blocked paths;
        Executables only; Allowed and blocked executables; Command validation; Lifecycle; Errors;
        Threat: debugging; Threat: exfiltration; Threat: all file; Threat: exhaustion; Log levels;
        Monitored: file_access_violations; Monitored: network_connection_attempts;
        Monitored: security_policy_violations; Monitored: command_execution_attempts;
        Monitored: resource_limit_approaches; Monitored: process_creation; Test category: escape;
        Test category: resources; Test category: access; Test category: network; Configuration;
        Deployment: minimal; Deployment: usage; Maintenance; Windows job""",
}


def required_items():
    """What the source documents number or list, each with the section whose first column must have it."""
    yield from (("000", f"INV-S{number}") for number in range(1, 10))
    yield from (("001", f"MUST allow {number}") for number in range(1, 9))
    yield from (("001", f"MUST block {number}") for number in range(1, 8))
    yield from (("002", f"T-{number}") for number in range(101, 109))
    last = {0: 13, 1: 8, 2: 12, 3: 12, 4: 20, 5: 12}  # of each phase
    yield from (("003", f"{phase}.{item}") for phase, most in last.items() for item in range(1, most + 1))
    for section, words in LISTED.items():
        yield from ((section, " ".join(item.split())) for item in words.split(";"))


def missing_items(text):
    for section, wanted in required_items():
        body = text.partition(f"\n## {section}:")[2].partition("\n## ")[0]
        items = [row.split("|")[1] for row in body.splitlines() if row.startswith("| ")]
        if not any(re.search(rf"(?<![\w.]){re.escape(wanted)}(?![\w.])", item) for item in items):
            yield f"no row for {wanted} of {section}"


def problems(text, known):
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| item ")]
    if len(rows) < 50:
        yield f"only {len(rows)} rows: the table was not read"
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        proof = cells[1] if len(cells) == 2 else ""
        names = NAME.findall(proof)
        reasoned = proof.startswith(("planned", "does not apply", "the rows"))
        if not names and not reasoned:
            yield f"neither a test nor a reason: {row}"
        for name in names:
            if name not in known:
                yield f"there is no test {name}: {row}"


def main():
    known = known_tests(ROOT)
    # The check itself must be able to fail.
    assert list(problems("| item | `No.Such` |", known)), "a missing test goes unnoticed"
    text = (ROOT / "docs/conformance.md").read_text()
    assert list(missing_items(text.replace("| T-107 ", "| T-1070 "))), "a missing row goes unnoticed"
    found = [*problems(text, known), *missing_items(text)]
    print("\n".join(found) if found else "conformance: every item has its row, every named test exists")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
