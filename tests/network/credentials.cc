#include "network/credentials.h"

#include <dirent.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace caisson::test {
namespace {

std::string state() { return std::getenv("CAISSON_TEST_INTERNET"); }

std::string lineOf(const std::string& seen, const std::string& path) {
  std::istringstream lines(seen);
  for (std::string line; std::getline(lines, line);) {
    if (contains(line, " " + path + " ")) return line;
  }
  return {};
}

}  // namespace

void CredentialsTest::SetUp() {
  NetworkTest::SetUp();
  if (IsSkipped()) return;
  home = files.makeDir("home", 0700);
  std::ofstream(state() + "/seen", std::ios::trunc).flush();
}

std::string CredentialsTest::credential(const std::string& host, const std::string& more,
                                        const std::string& authority) {
  return "[[network.credentials]]\nhost = \"" + host + "\"\nca_file = \"" + state() + "/" + authority + ".pem\"\n" +
         (contains(more, "secret_") ? "" : "secret_env = \"TOKEN\"\n") + more + "\n";
}

RunOptions CredentialsTest::how() const {
  RunOptions how;
  how.cwd = files.path();
  how.env["TOKEN"] = kSecret;
  how.env["CAISSON_HOME"] = home;
  return how;
}

std::string CredentialsTest::policy(const std::string& network) const { return policyFor(hosts, network); }

RunOutput CredentialsTest::run(const std::string& network, const std::vector<std::string>& command,
                               const std::vector<std::string>& options) const {
  std::vector<std::string> words{"run", "--policy", policy(network), "--workspace", ":none"};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return caisson(words);
}

RunOutput CredentialsTest::shell(const std::string& network, const std::string& script,
                                 const std::vector<std::string>& options) const {
  return run(network, {"bash", "-c", script}, options);
}

std::string CredentialsTest::seen() { return readFile(state() + "/seen"); }

bool CredentialsTest::arrivedWithSecret(const std::string& path) {
  return contains(lineOf(seen(), path), std::string(" ['Bearer ") + kSecret + "'] None");
}

bool CredentialsTest::arrivedWithout(const std::string& path) {
  const std::string line = lineOf(seen(), path);
  return !line.empty() && !contains(line, kSecret);
}

std::vector<pid_t> processes(const std::string& word, pid_t parent) {
  std::vector<pid_t> found;
  DIR* proc = opendir("/proc");
  while (const dirent* entry = readdir(proc)) {
    const std::string base = std::string("/proc/") + entry->d_name;
    if (std::atoi(entry->d_name) <= 0 || !contains(readFile(base + "/cmdline"), word)) continue;
    if (parent != 0 && !contains(readFile(base + "/status"), "PPid:\t" + std::to_string(parent) + "\n")) continue;
    found.push_back(std::atoi(entry->d_name));
  }
  closedir(proc);
  return found;
}

}  // namespace caisson::test
