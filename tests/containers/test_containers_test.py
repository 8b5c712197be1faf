#!/usr/bin/env python3
"""test_containers.py reports every difference from its table and from doctor's report. Starts no container."""
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import page  # noqa: E402
import probes  # noqa: E402
import rows  # noqa: E402
import test_containers  # noqa: E402
import world  # noqa: E402


def results(levels, **probes_of_row):
    found = {name: {"result": result} for name, result in probes_of_row.items()}
    return {"doctor": {"result": "x", "levels": levels}, **found}


class Comparison(unittest.TestCase):
    def test_difference_is_reported(self):
        report = {"row": {"run": {"result": "works"}}}
        self.assertEqual(list(test_containers.compare(report, {"row": {"run": "works"}})), [])
        self.assertEqual(len(list(test_containers.compare(report, {"row": {"run": "refused: x"}}))), 1)
        self.assertEqual(len(list(test_containers.compare(report, {}))), 1)

    def test_failed_container_is_reported(self):
        report = {"row": {"container": {"result": "failed: container"}}}
        self.assertEqual(len(list(test_containers.compare(report, {"row": {"run": "works"}}))), 1)

    def test_failing_documentation_example_is_reported(self):
        report = {"documentation": {"docker-1": {"result": "failed: status 1"}}}
        self.assertEqual(len(list(test_containers.compare(report, {}))), 1)

    def test_disagreement_with_doctor_is_reported(self):
        promises = test_containers.false_promises
        self.assertEqual(list(promises(results(["full", "landlock"], run="works", landlock="works"))), [])
        self.assertEqual(len(list(promises(results(["full"], run="refused: x")))), 1)
        self.assertEqual(len(list(promises(results([], run="works")))), 1)
        self.assertEqual(len(list(promises(results(["full"], run="works", session="refused: x")))), 1)
        self.assertEqual(len(list(promises(results([], landlock="works")))), 1)

    def test_things_left_on_the_machine_are_reported(self):
        self.assertEqual(list(world.differences({"mounts": ["a"]}, {"mounts": ["a"]})), [])
        self.assertEqual(len(list(world.differences({"mounts": ["a"]}, {"mounts": ["a", "b"]}))), 1)


class Tables(unittest.TestCase):
    def test_rows_and_expected_results_match(self):
        expected = test_containers.read_expected()
        self.assertEqual([row.name for row in rows.ROWS], list(expected))
        for row in rows.ROWS:
            self.assertEqual(set(row.probes), set(expected[row.name]), row.name)
            self.assertLessEqual(set(row.probes), set(probes.PROBES))

    def test_page_has_blocks_for_both_engines(self):
        found = page.blocks((HERE.parents[1] / "docs" / "containers.md").read_text())
        self.assertEqual({name.split("-")[0] for name, _ in found}, {"docker", "podman"})
        self.assertGreaterEqual(len(found), 6)


if __name__ == "__main__":
    unittest.main()
