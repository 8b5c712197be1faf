// `caisson verify`: runs all checks in sequence and reports the results for users and programs.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "verify/check.h"

namespace caisson::verify {

// One table per category; a file has one or two of them.
std::span<const Check> securityChecks();
std::span<const Check> resourceChecks();
std::span<const Check> networkChecks();
std::span<const Check> functionalChecks();
std::span<const Check> edgeCaseChecks();
std::span<const Check> invariantChecks();
std::span<const Check> cveChecks();
std::span<const Check> escapeChecks();

/// All checks, by category.
std::vector<const Check*> allChecks();

struct CheckResult {
  const Check* check = nullptr;
  Verdict verdict;
  double milliseconds = 0;
};

struct SuiteReport {
  std::string host;
  std::vector<CheckResult> results;
  [[nodiscard]] std::size_t count(CheckState state) const;
  [[nodiscard]] bool good() const { return count(CheckState::failed) == 0; }
};

/// Runs the checks of `category`, or all. If no sandbox can be started, the only result is that. Calls `progress`
/// before each check with its index and the total.
SuiteReport runSuite(Context& context, std::optional<Category> category,
                     const std::function<void(std::size_t at, std::size_t of, const Check& check)>& progress = {});

std::string renderText(const SuiteReport& report, bool colour);
std::string renderJson(const SuiteReport& report);
std::string renderJUnit(const SuiteReport& report);

/// The category of this name, "SECURITY" or "security"; nothing if it is unknown.
std::optional<Category> categoryNamed(std::string_view name);

}  // namespace caisson::verify
