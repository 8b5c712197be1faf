#include "network/network.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "support/test_program.h"

namespace caisson::test {
namespace {

std::string state() {
  const char* path = std::getenv("CAISSON_TEST_INTERNET");
  return path == nullptr ? "" : path;
}

std::string quotedList(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "\"" : ", \"") + text + "\"";
  return "[" + list + "]";
}

}  // namespace

void NetworkTest::SetUp() {
  requireOrSkip(!state().empty(), "no network namespaces here: run through tests/network/world.sh");
  files.openToAll();
}

RunOutput NetworkTest::run(const std::vector<std::string>& hosts, const std::vector<std::string>& command,
                           const std::string& more, const std::vector<std::string>& options) const {
  const std::string policy = policyFor(hosts, more);
  std::vector<std::string> words{"run", "--policy", policy, "--workspace", ":none", "--ro", certificate()};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  RunOptions how;
  how.cwd = files.path();
  return runCaisson(words, how);
}

RunOutput NetworkTest::weakened(const std::string& weakness, const std::vector<std::string>& hosts,
                                const std::string& script, const std::string& more) const {
  const char* program = std::getenv("CAISSON_WEAKENED");
  RunOptions how;
  how.cwd = files.path();
  how.env["CAISSON_BIN"] = caissonBinary();
  return runProgram({program != nullptr ? program : CAISSON_WEAKENED_BINARY, weakness, "--policy",
                     policyFor(hosts, more), "--workspace", ":none", "--ro", certificate(), "--", "bash", "-c", script},
                    how);
}

std::string NetworkTest::policyFor(const std::vector<std::string>& hosts, const std::string& more) const {
  return files.write(
      "policy.toml",
      "extends = \"bash\"\n[network]\nmode = \"proxy\"\ndns_servers = [\"93.184.0.2\"]\nallowed_hosts = " +
          quotedList(hosts) + "\n" + more + "\n");
}

RunOutput NetworkTest::shell(const std::vector<std::string>& hosts, const std::string& script,
                             const std::string& more) const {
  return run(hosts, {"bash", "-c", script}, more);
}

RunOutput NetworkTest::python(const std::vector<std::string>& hosts, const std::string& script,
                              const std::string& more) const {
  return run(hosts, {"/usr/bin/python3", "-c", script}, more);
}

nlohmann::json NetworkTest::json(const std::vector<std::string>& hosts, const std::vector<std::string>& command,
                                 const std::string& more) const {
  const RunOutput output = run(hosts, command, more, {"--json"});
  nlohmann::json result = output.json();
  EXPECT_TRUE(result.is_object()) << output.describe();
  return result;
}

std::string NetworkTest::queries() { return readFile(state() + "/queries"); }
void NetworkTest::forgetQueries() { std::ofstream(state() + "/queries", std::ios::trunc).flush(); }
std::string NetworkTest::requestsSeen() { return readFile(state() + "/seen"); }
std::string NetworkTest::sentToEarly() { return readFile(state() + "/early"); }
std::size_t NetworkTest::connectionsSeen(std::uint16_t port) {
  std::istringstream lines(readFile(state() + "/accepted"));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) count += line == std::to_string(port) ? 1 : 0;
  return count;
}
std::size_t NetworkTest::lingeringPorts(std::uint16_t port) {
  char suffix[16];
  std::snprintf(suffix, sizeof(suffix), ":%04X", port);
  std::size_t count = 0;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream lines(table);
    std::string number, local, remote, state;
    for (std::string line; std::getline(lines, line);) {
      std::istringstream(line) >> number >> local >> remote >> state;
      const bool closed = state == "06" || state == "05";  // TIME_WAIT, FIN_WAIT2
      count += closed && remote.ends_with(suffix) ? 1 : 0;
    }
  }
  return count;
}
std::string NetworkTest::certificate() { return state() + "/server.pem"; }

bool denied(const nlohmann::json& result, const std::string& object, const std::string& operation) {
  for (const auto& denial : result.at("denials")) {
    const bool same = denial.at("object") == object;
    if (same && (operation.empty() || denial.at("operation") == "network: " + operation)) return true;
  }
  return false;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace caisson::test

/// Re-executes itself within world.sh, if that is not running yet.
int main(int count, char** words) {
  if (std::getenv("CAISSON_TEST_WORLD") == nullptr) {
    const std::string script = caisson::test::sourceFile("tests/network/world.sh");
    char self[4096] = {};
    if (::readlink("/proc/self/exe", self, sizeof(self) - 1) > 0) {
      std::vector<char*> argv{const_cast<char*>("sh"), const_cast<char*>(script.c_str()), self};
      for (int i = 1; i < count; ++i) argv.push_back(words[i]);
      argv.push_back(nullptr);
      ::execvp("sh", argv.data());
    }
  }
  return caisson::test::runTestProgram(count, words);
}
