#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <ctime>
#include <fstream>

namespace bench {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (const std::string& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

class FileActions {
 public:
  explicit FileActions(const std::string& directory) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    if (!directory.empty()) posix_spawn_file_actions_addchdir_np(&actions_, directory.c_str());
  }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }

  void discard(int descriptor) { posix_spawn_file_actions_addopen(&actions_, descriptor, "/dev/null", O_WRONLY, 0); }
  void redirect(int from, int to) { posix_spawn_file_actions_adddup2(&actions_, from, to); }
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

pid_t spawn(const Command& command, FileActions& actions) {
  const auto argv = pointers(command.argv);
  const auto environment = pointers(command.environment);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, argv[0], actions.get(), nullptr, argv.data(), environment.data());
  return error == 0 ? pid : -1;
}

/// Reads both pipes until end of file; a program may fill either one first.
void drain(int out, int err, Captured& captured) {
  std::array<pollfd, 2> wanted{pollfd{out, POLLIN, 0}, pollfd{err, POLLIN, 0}};
  std::array<std::string*, 2> sinks{&captured.out, &captured.err};
  while (wanted[0].fd >= 0 || wanted[1].fd >= 0) {
    if (poll(wanted.data(), wanted.size(), -1) < 0 && errno != EINTR) return;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i].fd < 0 || wanted[i].revents == 0) continue;
      std::array<char, 4096> buffer;
      const ssize_t got = read(wanted[i].fd, buffer.data(), buffer.size());
      if (got > 0) {
        sinks[i]->append(buffer.data(), static_cast<std::size_t>(got));
      } else if (got == 0 || errno != EINTR) {
        wanted[i].fd = -1;
      }
    }
  }
}

int exitStatus(int status) {
  if (status < 0) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct ProcessorTime {
  double busy = 0, total = 0;
};

/// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal in ticks.
ProcessorTime processorTime() {
  std::ifstream file("/proc/stat");
  std::string label;
  file >> label;
  ProcessorTime time;
  double ticks = 0;
  for (int column = 0; column < 8 && file >> ticks; ++column) {
    time.total += ticks;
    if (column != 3 && column != 4) time.busy += ticks;
  }
  return time;
}

}  // namespace

double busyElsewhere() {
  const ProcessorTime before = processorTime();
  usleep(250'000);
  const ProcessorTime after = processorTime();
  return after.total > before.total ? (after.busy - before.busy) / (after.total - before.total) : 0;
}

double nowMs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

pid_t start(const Command& command) {
  FileActions actions(command.directory);
  actions.discard(1);
  actions.discard(2);
  return spawn(command, actions);
}

int await(pid_t pid) {
  int status = -1;
  while (wait4(pid, &status, 0, nullptr) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

std::optional<double> timeOnce(const Command& command) {
  FileActions actions(command.directory);
  actions.discard(1);
  actions.discard(2);
  const double begin = nowMs();
  const pid_t pid = spawn(command, actions);
  if (pid < 0) return std::nullopt;
  const int status = await(pid);
  const double end = nowMs();
  if (status != 0) return std::nullopt;
  return end - begin;
}

Captured capture(const Command& command) {
  Captured captured;
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  if (pipe2(out.data(), O_CLOEXEC) < 0) return captured;
  if (pipe2(err.data(), O_CLOEXEC) < 0) {
    close(out[0]);
    close(out[1]);
    return captured;
  }
  FileActions actions(command.directory);
  actions.redirect(out[1], 1);
  actions.redirect(err[1], 2);
  const pid_t pid = spawn(command, actions);
  close(out[1]);
  close(err[1]);
  if (pid >= 0) {
    drain(out[0], err[0], captured);
    captured.status = exitStatus(await(pid));
  }
  close(out[0]);
  close(err[0]);
  return captured;
}

std::optional<std::string> findProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    std::array<char, PATH_MAX> resolved;
    if (realpath(name.c_str(), resolved.data()) == nullptr || access(resolved.data(), X_OK) != 0) return std::nullopt;
    return std::string(resolved.data());
  }
  for (const char* directory : {"/usr/bin/", "/bin/", "/usr/sbin/", "/usr/local/bin/"}) {
    std::string path = directory + name;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return std::nullopt;
}

}  // namespace bench
