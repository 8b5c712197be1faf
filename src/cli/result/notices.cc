#include "cli/result/notices.h"

#include <algorithm>
#include <csignal>
#include <cstring>

namespace caisson::cli {
namespace {

// A payload can cause any number of denials; print only a few.
constexpr std::size_t kShownDenials = 5;

std::string_view remedy(Limit limit) {
  switch (limit) {
    case Limit::none: return "";
    case Limit::time: return "raise it with --timeout";
    case Limit::cpu: return "raise resources.cpu_seconds in the policy";
    case Limit::memory: return "raise it with --memory";
    case Limit::processes: return "raise it with --pids";
    case Limit::disk: return "raise it with --disk";
    case Limit::file_size: return "raise filesystem.max_file_size in the policy";
    case Limit::output: return "raise it with --output-limit";
  }
  return "";
}

/// The result knows more about memory and disk: which directory filled up.
std::string remedyOf(const RunResult& result) {
  for (const Denial& denial : result.denials) {
    const bool memory = result.limit == Limit::memory && denial.rule == "resources.memory";
    const bool disk = result.limit == Limit::disk && denial.rule == "filesystem.tmpfs";
    if (memory || disk) return denial.remedy;
  }
  return std::string(remedy(result.limit));
}

void addEnding(std::vector<std::string>& lines, const RunResult& result) {
  if (result.outcome == OutcomeKind::limit) {
    lines.push_back("ended by the " + std::string(name(result.limit)) + " limit; " + remedyOf(result));
  } else if (result.outcome == OutcomeKind::cancelled) {
    lines.emplace_back("cancelled");
  } else if (result.outcome == OutcomeKind::signaled) {
    // The user sent this signal or closed the pipe, so no notice is needed.
    for (const int expected : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
      if (result.signal == expected) return;
    const char* abbreviation = sigabbrev_np(result.signal);
    lines.push_back("ended by signal " + std::to_string(result.signal) +
                    (abbreviation == nullptr ? "" : std::string(" (SIG") + abbreviation + ")"));
  }
}

void addCut(std::vector<std::string>& lines, std::string_view stream, const Stream& data) {
  if (data.write_error != 0) {
    lines.push_back(std::string(stream) + " could not be written: " + strerrordesc_np(data.write_error));
  } else if (data.truncated) {
    lines.push_back(std::string(stream) + " was cut at the output limit, " + std::to_string(data.dropped) +
                    " bytes dropped; raise it with --output-limit or resources.output");
  }
}

/// Limits that addEnding and addCut already report.
bool isToldAlready(const Denial& denial) {
  for (const std::string_view rule :
       {"resources.wall_seconds", "resources.cpu_seconds", "resources.memory", "resources.output",
        "filesystem.max_file_size", "filesystem.max_total_size", "filesystem.tmpfs"})
    if (denial.rule == rule) return true;
  return false;
}

void addDenials(std::vector<std::string>& lines, const RunResult& result) {
  const bool success = exitStatus(result) == 0;
  std::size_t count = 0;
  for (const Denial& denial : result.denials) {
    if (isToldAlready(denial)) continue;
    if (success && denial.probe) continue;  // the program worked without it
    if (++count > kShownDenials) continue;
    lines.push_back(describeDenial(denial));
  }
  if (count > kShownDenials)
    lines.push_back("and " + std::to_string(count - kShownDenials) + " more; --json lists them all");
}

}  // namespace

std::string describeDenial(const Denial& denial) {
  std::string line = denial.operation + ": " + denial.object;
  if (denial.operation != kNotMoved) line = "denied: " + line;
  if (denial.count > 1) line += ", " + std::to_string(denial.count) + " times";
  if (!denial.rule.empty()) line += " (" + denial.rule + ")";
  if (!denial.remedy.empty()) line += "; " + denial.remedy;
  return line;
}

std::vector<std::string> noticesFor(const RunResult& result, bool watched, bool warned_before) {
  std::vector<std::string> lines;
  addEnding(lines, result);
  addCut(lines, "stdout", result.out);
  addCut(lines, "stderr", result.err);
  if (!result.error || result.escape) addDenials(lines, result);  // otherwise the error already reports it
  for (const std::string& notice : result.notices) lines.push_back(notice);
  const auto level = result.layers.find("level");
  const bool tier = level != result.layers.end() && level->second == "landlock tier" && !warned_before;
  if (watched || tier) {
    for (const std::string& warning : result.warnings) {
      if (std::ranges::find(lines, warning) == lines.end()) lines.push_back("warning: " + warning);
    }
  }
  return lines;
}

}  // namespace caisson::cli
