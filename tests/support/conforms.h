// Marks a test as the proof of requirements in docs/requirements.md. scripts/check_conformance.py compares the marks
// with that page, both ways, and prints the table of docs/conformance.md. The ids are also in the XML of a test run.
//
//   TEST_F(Root, IsReadOnly) {
//     CONFORMS("R-FILES-1");
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace caisson::test {

inline void recordConformance(std::initializer_list<std::string_view> ids) {
  std::string all;
  for (const std::string_view id : ids) all.append(all.empty() ? "" : " ").append(id);
  testing::Test::RecordProperty("conforms", all);
}

}  // namespace caisson::test

#define CONFORMS(...) ::caisson::test::recordConformance({__VA_ARGS__})
