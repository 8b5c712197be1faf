#include "hostile/sibling.h"

#include <sys/resource.h>

#include <algorithm>

namespace caisson::test {

std::vector<Attack> allAttacks() {
  const std::vector<std::string> stopped{"stop", "respond", "answer", "time"};
  const std::vector<std::string> killed{"kill", "signal", "ended", "died"};
  const std::vector<std::string> no_process{"process", "fork", "temporarily unavailable", "time"};
  return {{"stop-all", stopped, true},
          {"kill-all", killed, true},
          {"renice-all", {}, true},
          {"descriptors", {}},
          {"burn", {}, true},
          {"inotify", {}},
          {"semaphores", {}},
          {"ptys", {}},
          {"signals", {}},
          {"processes", no_process},
          {"fork-loop", no_process, true}};
}

std::string attackName(const testing::TestParamInfo<Attack>& info) {
  std::string name;
  bool upper = true;
  for (const char letter : info.param.kind) {
    if (letter != '-') name += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : letter;
    upper = letter == '-';
  }
  return name;
}

void PrintTo(const Attack& attack, std::ostream* out) { *out << attack.kind; }

void HostileSibling::SetUp() {
  std::string why;
  requireOrSkip(fullIsolationAvailable(&why), why);
  // The usual limit. The kernel compares it with the number of descriptors that all processes of the user have in
  // flight.
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::min<rlim_t>(1024, limit.rlim_max);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

void HostileSibling::createSession(const std::string& resources, const std::string& tables,
                                   const std::vector<std::string>& flags) {
  id = cli.create("[process]\nmax_processes = " + std::to_string(kMaxProcesses) + "\n[resources]\nopen_files = 4096\n" +
                      resources + tables,
                  flags);
  ASSERT_FALSE(id.empty());
}

void HostileSibling::startAttack(Clients clients) {
  cli.start(id, {"./payload", "sibling", GetParam().kind, cli.marker()});
  ASSERT_TRUE(eventually(
      [&] {
        const auto state = processState(attacker());
        return state && state->name == "sibling-ready";
      },
      std::chrono::seconds(10)))
      << "the attack does not begin: " << cli.caisson({"session", "logs", id, "1"}).describe();
  if (clients == Clients::none || !mayFail()) return;
  constexpr int kClients = 2;
  for (int i = 0; i < kClients; ++i) {
    clients_.push_back(std::make_unique<BackgroundProgram>(
        std::vector<std::string>{caissonBinary(), "session", "exec", id, "--", "sleep", "60"}, cli.options()));
  }
  // The attack may prevent it.
  eventually([&] { return std::ssize(cli.events("sandbox_execute")) > kClients; }, std::chrono::seconds(1));
}

bool HostileSibling::failedWithCause(const RunOutput& output) const {
  if (output.timed_out || output.exit_status == 0) return false;
  return std::ranges::any_of(GetParam().causes,
                             [&](const std::string& word) { return output.err.find(word) != std::string::npos; });
}

bool goesOn(const std::string& marker) {
  return std::ranges::any_of(liveProcesses(marker), [](pid_t pid) {
    const auto state = processState(pid);
    return state && state->state != 'T';
  });
}

}  // namespace caisson::test
