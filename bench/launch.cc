#include "launch.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <random>
#include <thread>

namespace bench {
namespace {

constexpr unsigned kWarmUpRounds = 20;
constexpr double kShareMs = 12;  // of one round that a row may take

/// A slow row is launched in every n-th round only, so that it does not take the others' time.
unsigned strideOf(const Row& row) { return std::clamp(static_cast<unsigned>(row.usual_ms / kShareMs), 1U, 50U); }

/// Launches per second with `in_flight` workers, each of which starts the next launch when one ends.
double stretch(const Command& command, unsigned in_flight, double seconds) {
  std::atomic<unsigned> completed{0};
  const double begin = nowMs();
  const double deadline = begin + seconds * 1e3;
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < in_flight; ++i) {
      workers.emplace_back([&] {
        while (nowMs() < deadline) {
          if (timeOnce(command)) completed.fetch_add(1, std::memory_order_relaxed);
        }
      });
    }
  }
  return completed.load() / ((nowMs() - begin) / 1e3);
}

}  // namespace

std::vector<LaunchResult> measureLaunches(const std::vector<Row>& rows, const Options& options) {
  std::vector<LaunchResult> results;
  for (const Row& row : rows) {
    if (row.absent.empty()) results.push_back({&row, {}, 0, 0});
  }
  std::vector<std::vector<double>> samples(results.size());
  std::vector<std::size_t> order(results.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(1);  // the same order in every run

  const double deadline = nowMs() + options.budget_seconds * 1e3;
  for (unsigned round = 0; round < options.launches + kWarmUpRounds && nowMs() < deadline; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t index : order) {
      if (round % strideOf(*results[index].row) != 0) continue;
      const auto elapsed = timeOnce(results[index].row->command);
      if (!elapsed) ++results[index].failures;
      if (elapsed && round >= kWarmUpRounds) samples[index].push_back(*elapsed);
    }
  }

  double floor = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i].ms = summarize(samples[i]);
    if (results[i].row->contender == Contender::floor) floor = results[i].ms.median;
  }
  for (LaunchResult& result : results) result.to_floor = floor > 0 ? result.ms.median / floor : 0;
  return results;
}

std::vector<ThroughputResult> measureThroughput(const std::vector<Row>& rows, const Options& options) {
  constexpr std::array contenders{Contender::floor, Contender::bubblewrap, Contender::bubblewrap_same,
                                  Contender::caisson};
  std::vector<ThroughputResult> results;
  for (const unsigned in_flight : {1U, 2U, 8U, 32U}) {
    std::array<std::vector<double>, contenders.size()> rates;
    for (int repetition = 0; repetition < 3; ++repetition) {
      for (std::size_t i = 0; i < contenders.size(); ++i) {
        const Row* row = find(rows, contenders[i]);
        if (row != nullptr) rates[i].push_back(stretch(row->command, in_flight, options.throughput_seconds));
      }
    }
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      const Row* row = find(rows, contenders[i]);
      if (row != nullptr) results.push_back({row, in_flight, median(rates[i])});
    }
  }
  return results;
}

}  // namespace bench
