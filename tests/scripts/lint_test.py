#!/usr/bin/env python3
"""The lints report the errors that they document, and nothing else."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"


def lint(script, files):
    """Runs a lint on a tree of the given files; returns (status, messages)."""
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        tree = {"src/CMakeLists.txt": "foreach(layer base sys policy cli)\nendforeach()\n", "include/caisson/a.h": "",
                "docs/architecture.md": "| folder | subfolders |\n|---|---|\n| `cli` | `commands`: one file each; `result` |\n",
                "src/cli/commands/run.cc": "", "src/cli/result/report.cc": ""}
        tree.update(files)
        for name, content in tree.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content)
        done = subprocess.run([sys.executable, SCRIPTS / script, root], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr


class Layers(unittest.TestCase):
    def test_upward_include_is_refused(self):
        status, output = lint("check_layers.py", {"src/base/a.cc": '#include "policy/b.h"\n', "src/policy/b.h": ""})
        self.assertEqual(status, 1)
        self.assertIn("src/base/a.cc:1: `base` is below `policy`", output)

    def test_downward_public_and_system_includes_are_fine(self):
        text = '#include "base/b.h"\n#include "caisson/a.h"\n#include <sys/stat.h>\n#include <policy.h>\n'
        self.assertEqual(lint("check_layers.py", {"src/policy/a.cc": text, "src/base/b.h": "#include <sys/stat.h>\n"}),
                         (0, ""))

    def test_unknown_folder_is_refused(self):
        self.assertEqual(lint("check_layers.py", {"src/stray/a.cc": ""})[0], 1)

    def test_public_header_may_not_pull_in_internals_or_libraries(self):
        for text in ('#include "base/b.h"\n', "#include <nlohmann/json.hpp>\n"):
            self.assertEqual(lint("check_layers.py", {"include/caisson/a.h": text, "src/base/b.h": ""})[0], 1, text)


    def test_table_of_subfolders_lists_exactly_those_of_the_source(self):
        self.assertEqual(lint("check_layers.py", {}), (0, ""))
        status, output = lint("check_layers.py", {"src/policy/rules/a.cc": ""})
        self.assertEqual(status, 1)
        self.assertIn("lacks `rules` of src/policy", output)
        rows = "| folder | subfolders |\n|---|---|\n| `cli` | `commands`; `result`; `gone` |\n"
        self.assertIn("src/cli/gone does not exist", lint("check_layers.py", {"docs/architecture.md": rows})[1])
        rows = rows.replace("; `gone`", "") + "| `cli` | `commands`; `result` |\n"
        self.assertIn("`cli` has two rows", lint("check_layers.py", {"docs/architecture.md": rows})[1])


class Paths(unittest.TestCase):
    def test_every_string_path_call_is_found(self):
        for call in ("open(p, 0)", "::mkdir(p, 0)", 'mount("a", "b", 0, 0, 0)', "unlink(p)", "rename(a, b)", "chown(p, 1, 1)",
                     "chmod(p, 1)", "std::filesystem::remove_all(p)", "std::remove(p)", "x = ::open(p, 0)",
                     "syscall(SYS_mount, a, b)", "case kOne: mkdir(p, 0)", "else unlink(p)"):
            status, output = lint("check_paths.py", {"src/policy/a.cc": f"void f() {{\n  {call};\n}}\n"})
            self.assertEqual(status, 1, call)
            self.assertIn("src/policy/a.cc:2", output)
        self.assertEqual(lint("check_paths.py", {"src/policy/a.cc": "void f() {\n  std::ofstream file(p);\n}\n"})[0], 1)

    def test_the_message_names_the_family_of_escapes(self):
        self.assertIn("CVE-2021-30465", lint("check_paths.py", {"src/cli/a.cc": "int x = mount(a, b, c, 0, 0);\n"})[1])

    def test_members_comments_strings_and_sys_itself_are_fine(self):
        text = 'void f() {\n  root.open("x");\n  root->unlink(p);\n  RootDir::open(p);\n  // open(p)\n  say("open(p)");\n'
        text += '  ::open("/dev/null", 0);\n}\n'
        self.assertEqual(lint("check_paths.py", {"src/policy/a.cc": text, "src/sys/b.cc": "int x = open(p, 0);\n"}), (0, ""))

    def test_a_stored_path_is_not_opened_by_name(self):
        text = "void f() {\n  auto root = sys::RootDir::open(metadata.workspace);\n}\n"
        for folder in ("session/store", "supervise", "host", "api", "isolation"):
            status, output = lint("check_paths.py", {f"src/{folder}/a.cc": text})
            self.assertEqual(status, 1, folder)
            self.assertIn(f"src/{folder}/a.cc:2", output)
        self.assertEqual(lint("check_paths.py", {"src/session/a.cc": text.replace("open(metadata.workspace)", "share(fd, {})")}),
                         (0, ""))

    def test_function_with_the_name_of_a_system_call_is_allowed(self):
        self.assertEqual(lint("check_paths.py", {"src/cli/b.h": "struct S {\n  bool open() const { return is_open; }\n};\n"}),
                         (0, ""))
        header = "class Writer {\n  Writer& open(char begin, char end);\n};\n"
        self.assertEqual(lint("check_paths.py", {"src/cli/a.h": header, "src/cli/a.cc": "void f() {\n  open('{', '}');\n}\n"}),
                         (0, ""))
        self.assertEqual(lint("check_paths.py", {"src/cli/a.h": header, "src/cli/a.cc": "void f() {\n  ::open(p, 0);\n}\n"})[0],
                         1)

    def test_allowlist_needs_a_reason_and_a_use(self):
        source = {"src/cli/a.cc": "int x = open(p, 0);\n"}
        allow = "scripts/path_allowlist.txt"
        self.assertEqual(lint("check_paths.py", {**source, allow: "src/cli/a.cc open: the caller's own file\n"})[0], 0)
        self.assertEqual(lint("check_paths.py", {**source, allow: "src/cli/a.cc open\n"})[0], 1)
        self.assertEqual(lint("check_paths.py", {**source, allow: "src/cli/a.cc: reason\nsrc/cli/gone.cc: reason\n"})[0], 1)


class Code(unittest.TestCase):
    @staticmethod
    def function(lines, head="void f() {", indent=""):
        return f"{indent}{head}\n" + f"{indent}  x();\n" * (lines - 2) + indent + "}\n"

    def test_long_function_is_found(self):
        for text in (self.function(61), self.function(61, "int A::f(int a,\n         int b) const {"),
                     "class A {\n public:\n" + self.function(61, indent="  ") + "};\n"):
            status, output = lint("check_code.py", {"src/base/a.cc": text})
            self.assertEqual(status, 1, text)
            self.assertIn("src/base/a.cc:", output)

    def test_short_functions_classes_and_tests_are_fine(self):
        text = self.function(60) + "\n" + self.function(60)
        text += "class A {\n public:\n" + "".join(self.function(20, indent="  ") for _ in range(9)) + "};\n"
        self.assertEqual(lint("check_code.py", {"src/base/a.cc": text, "src/base/a_test.cc": self.function(99)}), (0, ""))

    def test_decision_on_the_text_of_an_error_is_found(self):
        for text in ('error.reason == "x"', 'result.error().message().find("x")', 'error->call != "open"',
                     'error.hint.starts_with("try")'):
            self.assertEqual(lint("check_code.py", {"src/base/a.cc": f"bool f() {{\n  return {text};\n}}\n"})[0], 1, text)

    def test_decision_on_code_and_errno_is_fine(self):
        text = "bool f() {\n  return error.code == ErrorCode::other && error.sys_errno == ENOENT;\n}\n"
        self.assertEqual(lint("check_code.py", {"src/base/a.cc": text}), (0, ""))


class Printers(unittest.TestCase):
    def test_every_way_to_a_standard_stream_is_found(self):
        for call in ("::write(STDOUT_FILENO, p, n)", "(void)!::write(2, p, n)", "std::fputs(text.c_str(), stderr)", 'printf("%s", p)',
                     "std::cout << text", "writeAll(STDERR_FILENO, text)", "writeAll(err ? STDERR_FILENO : STDOUT_FILENO, text)",
                     "printBytes(text)", "std::println(text)", "dprintf(1, text)"):
            status, output = lint("check_printers.py", {"src/cli/a.cc": f"void f() {{ {call}; }}\n"})
            self.assertEqual(status, 1, call)
            self.assertIn("src/cli/a.cc:1", output, call)

    def test_printers_that_escape_and_other_descriptors_are_fine(self):
        text = "void f() { print(text); printNotice(text); ::write(pipe, p, n); std::snprintf(b, n, p); // printf(p)\n}\n"
        self.assertEqual(lint("check_printers.py", {"src/cli/a.cc": text, "src/cli/a_test.cc": "std::cout << 1;\n"}), (0, ""))

    def test_exception_needs_a_reason_and_must_be_used(self):
        call = {"src/cli/a.cc": "void f() { printBytes(text); }\n"}
        allow = {"scripts/printer_allowlist.txt": "src/cli/a.cc printBytes: a patch for a program\n"}
        self.assertEqual(lint("check_printers.py", {**call, **allow}), (0, ""))
        self.assertIn("unused", lint("check_printers.py", allow)[1])
        self.assertEqual(lint("check_printers.py", {**call, "scripts/printer_allowlist.txt": "src/cli/a.cc printBytes\n"})[0], 1)


if __name__ == "__main__":
    unittest.main()
