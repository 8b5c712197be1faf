#include "support/session_cli.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <sstream>

#include "support/environment.h"
#include "support/processes.h"

namespace caisson::test {

SessionCli::SessionCli() {
  static std::atomic<int> count = 0;
  marker_ = "marker-" + std::to_string(getpid()) + "-" + std::to_string(std::time(nullptr)) + "-" +
            std::to_string(++count) + "-end";
  // With a root caller, the payload runs under another uid.
  home.openToAll();
  workspace.write("payload", readFile(payloadPath()), 0755);
  chmod(workspace.path().c_str(), 0777);
}

SessionCli::~SessionCli() {
  for (const pid_t pid : liveProcesses(marker_)) signalProcess(sandboxInit(pid), SIGKILL);
  const RunOutput cleaned = caisson({"clean", "--all"}, std::chrono::seconds(15));
  EXPECT_FALSE(cleaned.timed_out) << "clean --all does not end: " << cleaned.describe();
}

RunOptions SessionCli::options() const {
  RunOptions how;
  how.cwd = workspace.path();
  how.env["CAISSON_HOME"] = home / "state";
  return how;
}

RunOutput SessionCli::caisson(const Words& args, Milliseconds timeout, const std::string& input) const {
  RunOptions how = options();
  how.timeout = timeout;
  how.stdin_data = input;
  return runCaisson(args, how);
}

std::string SessionCli::create(const std::string& policy, const Words& flags) const {
  const std::string file = home.write("policy.toml", "extends = \"bash\"\n" + policy);
  Words args{"session", "create", "--workspace", workspace.path(), "--policy", file};
  args.insert(args.end(), flags.begin(), flags.end());
  const RunOutput made = caisson(args);
  EXPECT_EQ(made.exit_status, 0) << made.describe();
  return made.out.substr(0, made.out.find('\n'));
}

RunOutput SessionCli::exec(const std::string& id, const Words& command, const Words& flags,
                           Milliseconds timeout) const {
  Words args{"session", "exec", id};
  args.insert(args.end(), flags.begin(), flags.end());
  args.emplace_back("--");
  args.insert(args.end(), command.begin(), command.end());
  return caisson(args, timeout);
}

RunOutput SessionCli::script(const std::string& id, const std::string& text, const Words& flags,
                             Milliseconds timeout) const {
  return exec(id, {"sh", "-c", text, marker_}, flags, timeout);
}

void SessionCli::start(const std::string& id, const Words& command) const {
  const RunOutput started = exec(id, command, {"--background"});
  EXPECT_EQ(started.exit_status, 0) << started.describe();
}

std::vector<nlohmann::json> SessionCli::events(const std::string& name) const {
  Words args{"audit", "show", "--json"};
  if (!name.empty()) args.insert(args.end(), {"--event", name});
  std::istringstream lines(caisson(args).out);
  std::vector<nlohmann::json> found;
  for (std::string line; std::getline(lines, line);) found.push_back(nlohmann::json::parse(line, nullptr, false));
  return found;
}

long SessionCli::storedKib() const { return std::atol(runProgram({"du", "-sk", home / "state"}).out.c_str()); }

}  // namespace caisson::test
