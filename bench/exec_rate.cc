// exec_rate THREADS: how many commands per second the library runs in one session, for bench/http_api.py.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "caisson/caisson.h"

namespace {

using namespace caisson;
using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kTime{5};

[[noreturn]] void stop(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  std::exit(1);
}

}  // namespace

int main(int count, char** args) {
  const int threads = count > 1 ? std::atoi(args[1]) : 1;
  const char* const program = std::getenv("CAISSON_BIN");
  auto store = SessionStore::open(program == nullptr ? "" : program);
  if (!store) stop(store.error());
  auto policy = *Policy::profile("dev");
  if (auto set = policy.set("filesystem.workspace.mode", "none"); !set) stop(set.error());
  auto session = store->create({.policy = policy});
  if (!session) stop(session.error());
  std::atomic<long> done{0};
  const auto end = Clock::now() + kTime;
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      auto own = store->find(session->id());
      if (!own) stop(own.error());
      while (Clock::now() < end) {
        const auto result = own->exec({.command = {"true"}});
        if (!result) stop(result.error());
        ++done;
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  std::printf("%.1f\n", static_cast<double>(done) / std::chrono::duration<double>(kTime).count());
  if (auto destroyed = session->destroy(); !destroyed) stop(destroyed.error());
}
