#!/usr/bin/env python3
"""container_profile_test.py: the seccomp profiles for containers allow only safe calls and those that
caisson needs."""
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "packaging" / "seccomp" / "make_profile.py"
TABLES = (ROOT / "src" / "base").glob("syscalls_*.inc")
DANGEROUS = {"acct", "add_key", "bpf", "clock_settime", "delete_module", "finit_module", "init_module", "io_uring_setup",
             "kexec_file_load", "kexec_load", "keyctl", "open_by_handle_at", "perf_event_open", "reboot", "swapon",
             "userfaultfd"}

_specification = importlib.util.spec_from_file_location("make_profile", SCRIPT)
make_profile = importlib.util.module_from_spec(_specification)
_specification.loader.exec_module(make_profile)


def known_calls():
    """Returns every known system call of the two architectures."""
    return {name for table in TABLES for name in re.findall(r"CAISSON_SYSCALL\((\w+),", table.read_text())}


def allowed(profile):
    return {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)


class CompleteProfile(unittest.TestCase):
    def test_every_known_call_is_in_exactly_one_list(self):
        listed = [name for groups in (make_profile.NEEDED, make_profile.ORDINARY, make_profile.REFUSED)
                  for name in make_profile.names(groups)] + list(make_profile.CONDITIONAL)
        self.assertEqual(sorted(listed), sorted(set(listed)))
        self.assertEqual(known_calls() - set(listed), set())

    def test_refused_calls_are_not_allowed(self):
        profile = make_profile.complete()
        self.assertEqual(profile["defaultAction"], "SCMP_ACT_ERRNO")
        self.assertEqual(allowed(profile) & (DANGEROUS | set(make_profile.names(make_profile.REFUSED))), set())

    def test_file_in_the_repository_is_current(self):
        self.assertEqual(run("--check", SCRIPT.with_name("caisson.json")).returncode, 0,
                         "run packaging/seccomp/make_profile.py > packaging/seccomp/caisson.json")

    def test_keys_are_those_of_the_runtime_specification(self):
        profile = make_profile.complete()
        self.assertEqual(set(profile), {"defaultAction", "defaultErrnoRet", "architectures", "syscalls"})
        for rule in profile["syscalls"]:
            self.assertLessEqual(set(rule), {"names", "action", "args"})


class ExtendedProfile(unittest.TestCase):
    OTHER = {"defaultAction": "SCMP_ACT_ERRNO", "archMap": [], "syscalls": [
        {"names": ["read", "clone"], "action": "SCMP_ACT_ALLOW", "args": [], "includes": {}, "excludes": {}},
        {"names": ["bpf", "sethostname"], "action": "SCMP_ACT_ERRNO", "excludes": {"caps": ["CAP_SYS_ADMIN"]}},
        {"names": ["sethostname"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
    ]}

    def extended(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(self.OTHER, file)
            file.flush()
            done = run("--extend", file.name)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)

    def test_needed_calls_are_allowed_without_conditions(self):
        needed = set(make_profile.names(make_profile.NEEDED))
        rules = [rule for rule in self.extended()["syscalls"] if needed & set(rule["names"])]
        self.assertEqual(len(rules), 1)
        self.assertEqual(set(rules[0]["names"]), needed)
        self.assertLessEqual(set(rules[0]), {"names", "action"})

    def test_other_rules_are_kept(self):
        made = self.extended()
        self.assertEqual(made["archMap"], [])
        self.assertIn({**self.OTHER["syscalls"][1], "names": ["bpf"]}, made["syscalls"])
        self.assertIn("read", allowed(made))
        self.assertNotIn("bpf", allowed(made))

    def test_missing_file_is_an_error(self):
        done = run("--extend", "/nowhere.json")
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nowhere.json", done.stderr)


if __name__ == "__main__":
    unittest.main()
