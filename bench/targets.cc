#include "targets.h"

#include <algorithm>
#include <cstdio>

namespace bench {
namespace {

// Beyond these, a difference of some ten per cent between two rows is not significant.
constexpr double kLargestSpread = 0.30;
constexpr double kLargestDrift = 0.10;
constexpr double kLargestLoad = 0.10;
// A target of three per cent is evaluated only if the middle half of each sample is about as narrow.
constexpr double kLargestWorkSpread = 0.08;

const LaunchResult* launchOf(const Results& results, Contender contender) {
  for (const LaunchResult& launch : results.launches) {
    if (launch.row->contender == contender && launch.ms.count > 0) return &launch;
  }
  return nullptr;
}

double bestRate(const Results& results, Contender contender) {
  double best = 0;
  for (const ThroughputResult& one : results.throughput) {
    if (one.row->contender == contender) best = std::max(best, one.per_second);
  }
  return best;
}

void judgeLaunches(const Results& results, std::vector<Verdict>& verdicts) {
  std::string why;
  const bool noisy = isNoisy(results, why);
  const auto* full = launchOf(results, Contender::caisson);
  const auto* no_cgroup = launchOf(results, Contender::caisson_no_cgroup);
  const auto* bubblewrap = launchOf(results, Contender::bubblewrap);
  if (full != nullptr && full->to_floor > 0) {
    const bool without = ranWithoutCgroup(results.layers);
    verdicts.push_back({without ? "launch / floor (no cgroup on this host)" : "launch / floor, everything on",
                        full->to_floor, without ? 1.3 : 1.5, false, noisy});
  }
  const auto* audited = launchOf(results, Contender::caisson_audit);
  const auto* unaudited = launchOf(results, Contender::caisson_no_audit);
  if (audited != nullptr && unaudited != nullptr) {
    verdicts.push_back(
        {"launch / the same without audit", audited->ms.median / unaudited->ms.median, 1.05, false, noisy});
  }
  if (no_cgroup != nullptr && no_cgroup->to_floor > 0) {
    verdicts.push_back({"launch / floor, cgroups switched off", no_cgroup->to_floor, 1.3, false, noisy});
  }
  if (full != nullptr && bubblewrap != nullptr) {
    verdicts.push_back(
        {"launch / bubblewrap's, its lean command line", full->ms.median / bubblewrap->ms.median, 1.0, false, noisy});
  }
}

void judgeWork(const WorkResult& work, std::vector<Verdict>& verdicts) {
  if (!work.caisson) return;
  const bool noisy = std::max(work.native.spread, work.caisson->summary.spread) > kLargestWorkSpread;
  if (work.unit == "ms") {
    verdicts.push_back({"inside / native: " + work.name, work.caisson->ratio, 1.03, false, noisy});
  } else {
    verdicts.push_back({"ns added to one " + work.name, work.caisson->difference, 40, false, noisy});
  }
}

}  // namespace

bool isNoisy(const Results& results, std::string& why) {
  char text[160];
  if (results.busy_elsewhere > kLargestLoad) {
    std::snprintf(text, sizeof text, "other programs used %.0f %% of the processors", results.busy_elsewhere * 100);
    why = text;
    return true;
  }
  for (const LaunchResult& launch : results.launches) {
    if (launch.row->contender == Contender::peer)
      continue;  // no target is about them, and the slow ones run less often
    if (launch.ms.spread > kLargestSpread) {
      std::snprintf(text, sizeof text, "the middle half of `%s` spans %.0f %% of its median", launch.row->name.c_str(),
                    launch.ms.spread * 100);
    } else if (launch.ms.drift > kLargestDrift) {
      std::snprintf(text, sizeof text, "the median of `%s` moved by %.0f %% during the run", launch.row->name.c_str(),
                    launch.ms.drift * 100);
    } else {
      continue;
    }
    why = text;
    return true;
  }
  return false;
}

bool ranWithoutCgroup(const std::string& layers) {
  const auto key = layers.find("\"cgroup\"");
  if (key == std::string::npos) return false;
  const auto value = layers.find('"', layers.find(':', key));
  return value != std::string::npos && layers.compare(value + 1, 7, "missing") == 0;
}

std::vector<Verdict> judge(const Results& results) {
  std::vector<Verdict> verdicts;
  judgeLaunches(results, verdicts);
  const double ours = bestRate(results, Contender::caisson);
  // Compared with the peer that does the same job: its minimal command line builds half the mounts, and is also in the
  // table.
  const double theirs = bestRate(results, Contender::bubblewrap_same);
  std::string why;
  const bool noisy = isNoisy(results, why);
  if (ours > 0 && theirs > 0)
    verdicts.push_back({"launches per second / bubblewrap's, same mounts", ours / theirs, 1.5, true, noisy});
  for (const MemoryResult& memory : results.memory) {
    if (memory.name != "caisson full") continue;
    verdicts.push_back({"MiB held by caisson itself", memory.peak_pss_kib / 1024, 4, false, false});
  }
  if (results.audit && results.audit->absent.empty()) {
    verdicts.push_back({"audit events per second on one core", results.audit->events_per_second, 20000, true, false});
  }
  for (const WorkResult& work : results.work) judgeWork(work, verdicts);
  for (const GrowthResult& growth : results.growth) {
    if (growth.bend() > 0) verdicts.push_back({"straightness: " + growth.what, growth.bend(), 1.5, false, noisy});
  }
  return verdicts;
}

}  // namespace bench
