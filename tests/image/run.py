#!/usr/bin/env python3
"""run.py [--gtest_output=xml:FILE] SUITE...: runs image suites (local, names, hostile, build, registry, trust, interop, crash).

Refuses the suite `hostile` as root.

CAISSON_BIN is the program; caisson-image and caisson-unpack are in its directory. Results are also written in
GoogleTest's format.
"""
import os
import pathlib
import sys
import time
import unittest
import xml.etree.ElementTree as ElementTree

SOURCE = pathlib.Path(os.environ.get("CAISSON_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "tests/image"))


class Cases(unittest.TextTestResult):
    """Keeps the outcome of each case for the XML file."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.cases = []

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def note(self, test, kind="passed", reason=""):
        self.cases.append((type(test).__name__, getattr(test, "_testMethodName", str(test)), kind, reason, time.monotonic() - getattr(self, "began", time.monotonic())))

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, "failed", str(err[1]))

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, "failed", repr(err[1]))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped", reason)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.note(test, "failed", f"{subtest}: {err[1]}")


def write_results(path, cases):
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(root, "testsuite", name="image")
    for group, name, kind, reason, seconds in cases:
        case = ElementTree.SubElement(suite, "testcase", classname=group, name=name, time=f"{seconds:.3f}", status="run", result="completed")
        if kind == "failed":
            ElementTree.SubElement(case, "failure", message=reason[:2000])
        if kind == "skipped":
            case.set("result", "skipped")
            ElementTree.SubElement(case, "skipped", message=reason)
    ElementTree.ElementTree(root).write(path)


def main(words):
    output = [word.split(":", 1)[1] for word in words if word.startswith("--gtest_output=xml:")]
    # Not as root: an ordinary user can do less harm if a protection fails.
    usual = ["local", "names", "build"] if os.geteuid() == 0 else ["local", "names", "hostile", "build"]
    suites = [word for word in words if not word.startswith("--")] or usual
    if "hostile" in suites and os.geteuid() == 0:
        print("the suite hostile does not run as root: start it as an ordinary user, or with `make test-images SUITES=hostile`",
              file=sys.stderr)
        return 1
    program = os.environ.get("CAISSON_BIN", "")
    if not os.access(pathlib.Path(program).parent / "caisson-image", os.X_OK):
        print("caisson-image is not built: libarchive, libcurl or libzstd is missing")
        return 77
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{os.environ['CAISSON_IMAGE_FILTER']}*"] if "CAISSON_IMAGE_FILTER" in os.environ else None
    tests = unittest.TestSuite(loader.loadTestsFromName(f"{name}_suite") for name in suites)
    result = unittest.TextTestRunner(resultclass=Cases, verbosity=2).run(tests)
    if output:
        write_results(output[0], result.cases)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
