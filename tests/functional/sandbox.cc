#include "functional/sandbox.h"

#include <dirent.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdlib>
#include <ctime>
#include <memory>

namespace caisson::test {

namespace {

const RunOutput& emptyRun() {
  static const RunOutput output = runCaisson({"run", "--workspace", ":none", "--", "/bin/true"});
  return output;
}

}  // namespace

void SandboxTest::SetUp() {
  requireOrSkip(emptyRun().exit_status == 0, "level full does not work here: " + emptyRun().describe());
}

RunOutput SandboxTest::run(const std::vector<std::string>& options, const std::vector<std::string>& command,
                           RunOptions how) const {
  std::vector<std::string> arguments{"run"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), command.begin(), command.end());
  if (how.cwd.empty()) how.cwd = workspace.path();
  return runCaisson(arguments, how);
}

RunOutput SandboxTest::script(const std::string& text, const std::vector<std::string>& options,
                              const RunOptions& how) const {
  return run(options, {"bash", "-c", text}, how);
}

RunOutput SandboxTest::onHost(const std::string& text, RunOptions how) const {
  how.env["CAISSON"] = caissonBinary();
  if (how.cwd.empty()) how.cwd = workspace.path();
  return runProgram({"bash", "-c", text}, how);
}

bool systemHas(const std::string& program) {
  for (const char* directory : {"/usr/local/bin/", "/usr/bin/", "/usr/sbin/"}) {
    const std::string path = directory + program;
    if (access(path.c_str(), X_OK) != 0) continue;
    const std::unique_ptr<char, decltype(&std::free)> target(realpath(path.c_str(), nullptr), &std::free);
    return target != nullptr && std::string(target.get()).starts_with("/usr/");
  }
  return false;
}

std::vector<pid_t> processesNaming(const std::string& marker) {
  std::vector<pid_t> found;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return found;
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0 || pid == getpid()) continue;
    if (contains(readFile("/proc/" + std::to_string(pid) + "/cmdline"), marker)) found.push_back(pid);
  }
  closedir(proc);
  return found;
}

std::string uniqueMarker() {
  static std::atomic<int> count = 0;
  return "marker-" + std::to_string(getpid()) + "-" + std::to_string(std::time(nullptr)) + "-" +
         std::to_string(++count) + "-end";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace caisson::test
