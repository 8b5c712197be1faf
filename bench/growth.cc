#include "growth.h"

#include <signal.h>
#include <sys/wait.h>

#include <array>
#include <filesystem>
#include <functional>

namespace bench {
namespace {

constexpr std::array<unsigned, 4> kCounts{0, 16, 64, 256};
constexpr std::array<unsigned, 4> kSandboxes{0, 25, 100, 200};
constexpr unsigned kRounds = 40;
constexpr unsigned kWarmUp = 3;

/// A policy text with `count` entries of some kind.
using Text = std::function<std::string(unsigned count, const Scratch& scratch)>;

struct Dimension {
  const char* what;
  Text text;
};

std::string listOf(unsigned count, const std::function<std::string(unsigned)>& item) {
  std::string list = "[";
  for (unsigned i = 0; i < count; ++i) list += (i > 0 ? ",\"" : "\"") + item(i) + "\"";
  return list + "]";
}

std::string numbered(const std::string& stem, unsigned number) { return stem + std::to_string(number); }

std::string shownDirectories(unsigned count, const Scratch& scratch) {
  const std::string stem = scratch.path("shown/d");
  for (unsigned i = 0; i < count; ++i) {
    std::error_code error;
    std::filesystem::create_directories(numbered(stem, i), error);
  }
  return "filesystem.read_only = " + listOf(count, [&](unsigned i) { return numbered(stem, i); });
}

std::string deniedFiles(unsigned count, const Scratch& scratch) {
  const std::string stem = scratch.path("growth-workspace/f");
  for (unsigned i = 0; i < count; ++i) writeFile(numbered(stem, i), "x");
  return "filesystem.denied = " + listOf(count, [&](unsigned i) { return numbered(stem, i); });
}

std::string variables(unsigned count, const Scratch&) {
  std::string text = "[environment.set]\n";
  for (unsigned i = 0; i < count; ++i) text += numbered("NAME_", i) + " = \"some value of usual length\"\n";
  return text;
}

std::string patterns(unsigned count, const Scratch&) {
  return "commands.blocked_patterns = " + listOf(count, [](unsigned i) { return numbered("never-[a-z]+-", i) + ".*"; });
}

std::string hosts(unsigned count, const Scratch&) {
  return "network.denied_hosts = " + listOf(count, [](unsigned i) { return numbered("*.host-", i) + ".example.org"; });
}

const Dimension kDimensions[] = {{"directories shown read-only", shownDirectories},
                                 {"denied files in the workspace", deniedFiles},
                                 {"environment variables", variables},
                                 {"command patterns", patterns},
                                 {"hosts in the policy", hosts}};

/// Launches each command in turn, repeatedly.
GrowthResult alternate(const std::string& what, const std::vector<std::pair<unsigned, Command>>& commands) {
  GrowthResult result{what, {}, ""};
  std::vector<std::vector<double>> samples(commands.size());
  for (unsigned round = 0; round < kWarmUp + kRounds; ++round) {
    for (std::size_t i = 0; i < commands.size(); ++i) {
      const auto ms = timeOnce(commands[i].second);
      if (!ms) {
        result.absent = "with " + std::to_string(commands[i].first) + ": " + capture(commands[i].second).err;
        return result;
      }
      if (round >= kWarmUp) samples[i].push_back(*ms);
    }
  }
  for (std::size_t i = 0; i < commands.size(); ++i) result.points.push_back({commands[i].first, summarize(samples[i])});
  return result;
}

GrowthResult measure(const Dimension& dimension, const Options& options, const Scratch& scratch) {
  const std::string workspace = scratch.path("growth-workspace");
  std::error_code error;
  std::filesystem::create_directories(workspace, error);
  std::vector<std::pair<unsigned, Command>> commands;
  for (const unsigned count : kCounts) {
    const std::string policy = scratch.path("growth-" + std::to_string(count) + ".toml");
    writeFile(policy, "extends = \"bash\"\n" + dimension.text(count, scratch) + "\n");
    auto command =
        caissonRun(options, scratch, {"--policy", policy, "--workspace", workspace + ":overlay", "--", "true"});
    if (!command) return {dimension.what, {}, "no such program: " + options.caisson};
    commands.emplace_back(count, std::move(*command));
  }
  return alternate(dimension.what, commands);
}

/// Sleeping sandboxes, killed by the destructor.
class Crowd {
 public:
  Crowd() = default;
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd() {
    for (const pid_t pid : members_) kill(pid, SIGTERM);  // our own children, not yet waited for
    for (const pid_t pid : members_) waitpid(pid, nullptr, 0);
  }
  bool growTo(std::size_t count, const Command& command) {
    while (members_.size() < count) {
      const pid_t pid = start(command);
      if (pid < 0) return false;
      members_.push_back(pid);
    }
    return true;
  }

 private:
  std::vector<pid_t> members_;
};

/// In sequence, since the crowd only grows.
GrowthResult measureCrowd(const Options& options, const Scratch& scratch) {
  GrowthResult result{"sandboxes alive", {}, ""};
  const auto sleeper = caissonRun(options, scratch, {"--profile", "bash", "--", "sleep", "600"});
  const auto launch = caissonRun(options, scratch, {"--profile", "bash", "--", "true"});
  if (!sleeper || !launch) return {result.what, {}, "no such program: " + options.caisson};
  Crowd crowd;
  for (const unsigned count : kSandboxes) {
    if (!crowd.growTo(count, *sleeper)) return {result.what, {}, "cannot start so many"};
    while (busyElsewhere() > 0.3) {  // until all of them sleep
    }
    std::vector<double> sample;
    for (unsigned round = 0; round < kWarmUp + kRounds; ++round) {
      const auto ms = timeOnce(*launch);
      if (!ms) return {result.what, {}, "with " + std::to_string(count) + ": " + capture(*launch).err};
      if (round >= kWarmUp) sample.push_back(*ms);
    }
    result.points.push_back({count, summarize(sample)});
  }
  return result;
}

}  // namespace

double GrowthResult::each() const {
  if (points.size() < 2) return 0;
  return (points.back().ms.median - points.front().ms.median) * 1e3 / points.back().count;
}

double GrowthResult::bend() const {
  if (points.size() < 3) return 0;
  const GrowthPoint &none = points.front(), &some = points[points.size() - 2], &most = points.back();
  const double lower = (some.ms.median - none.ms.median) / some.count;
  const double upper = (most.ms.median - some.ms.median) / (most.count - some.count);
  const double noise = most.ms.median * most.ms.spread;
  if (most.ms.median - none.ms.median < noise || lower * some.count < noise / 4) return 0;
  return upper / lower;
}

std::vector<GrowthResult> measureGrowth(const Options& options, const Scratch& scratch) {
  std::vector<GrowthResult> results;
  for (const Dimension& dimension : kDimensions) results.push_back(measure(dimension, options, scratch));
  results.push_back(measureCrowd(options, scratch));
  return results;
}

}  // namespace bench
