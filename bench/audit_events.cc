// audit_events DIRECTORY SECONDS: how many events one writer on one core appends to the audit log, each acknowledged
// before the next. Prints the rate. Bound to one processor, including the sync process.
#include <sched.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "audit/log.h"

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  if (argc != 3) return 2;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
  if (sched_setaffinity(0, sizeof(one), &one) != 0) return 1;
  auto log = caisson::audit::Log::open(argv[1]);
  if (!log) {
    std::fprintf(stderr, "%s\n", log.error().message().c_str());
    return 1;
  }
  const std::chrono::duration<double> wanted(std::atof(argv[2]));
  const auto begin = Clock::now();
  std::chrono::duration<double> elapsed{};
  unsigned long count = 0;
  for (; elapsed < wanted; elapsed = Clock::now() - begin) {
    for (int i = 0; i < 100; ++i, ++count) {
      caisson::audit::Fields fields;
      fields.text("syscall", "perf_event_open").number("number", 241).number("count", count);
      fields.text("program", "/usr/bin/python3.11").text("indicator", "SYSCALL");
      const auto written = log->append({caisson::audit::EventType::syscall_blocked, caisson::audit::Severity::warn,
                                        "cs-00112233445566778899aabbccddeeff", std::move(fields)});
      if (!written) {
        std::fprintf(stderr, "%s\n", written.error().message().c_str());
        return 1;
      }
    }
    log->handOver();  // as a run does: synced within a second, by another process on this same core
  }
  std::printf("%.0f\n", static_cast<double>(count) / elapsed.count());
  return 0;
}
