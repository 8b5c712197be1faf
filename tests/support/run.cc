#include "support/run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "support/environment.h"

namespace caisson::test {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
    read_end = ends[0];
    write_end = ends[1];
  }
  ~Pipe() {
    closeEnd(read_end);
    closeEnd(write_end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  static void closeEnd(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
};

std::vector<std::string> environmentFor(const RunOptions& options) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const std::string& name : options.unset) variables.erase(name);
  for (const auto& [name, value] : options.env) variables[name] = value;
  std::vector<std::string> result;
  for (const auto& [name, value] : variables) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// Forks and executes `argv` in a new process group, with the given descriptors as 0, 1 and 2.
pid_t start(std::vector<std::string> argv, const RunOptions& options, int in, int out, int err) {
  std::vector<std::string> env = environmentFor(options);
  const std::vector<char*> argv_pointers = pointers(argv);
  const std::vector<char*> env_pointers = pointers(env);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid > 0) {
    setpgid(pid, pid);  // also in the child, so that the group exists whichever runs first
    return pid;
  }
  setpgid(0, 0);
  signal(SIGPIPE, SIG_DFL);
  if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) _exit(120);
  if (!options.cwd.empty() && chdir(options.cwd.c_str()) != 0) _exit(121);
  for (const int fd : options.close) close(fd);
  execvpe(argv_pointers[0], argv_pointers.data(), env_pointers.data());
  _exit(errno == ENOENT ? 127 : 126);
}

/// Reads what is available; closes the descriptor at end of file.
void drain(int& end, std::string& into) {
  std::array<char, 65536> buffer;  // NOLINT: filled by read
  const ssize_t count = read(end, buffer.data(), buffer.size());
  if (count > 0) {
    into.append(buffer.data(), static_cast<std::size_t>(count));
  } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
    Pipe::closeEnd(end);
  }
}

/// Writes what fits; closes the descriptor when all is written or the reader is gone.
void feed(int& end, const std::string& data, std::size_t& written) {
  while (written < data.size()) {
    const ssize_t count = write(end, data.data() + written, data.size() - written);
    if (count < 0) {
      if (errno == EINTR || errno == EAGAIN) return;
      break;
    }
    written += static_cast<std::size_t>(count);
  }
  Pipe::closeEnd(end);
}

int asShellStatus(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

/// Relays data until both outputs are closed and the program has exited, or until the deadline.
void relayUntilEnd(pid_t pid, Pipe& in, Pipe& out, Pipe& err, const RunOptions& options, RunOutput& result) {
  const auto deadline = deadlineAfter(options.timeout);
  std::size_t written = 0;
  bool reaped = false;
  int wait_status = 0;
  while (!reaped || out.read_end >= 0 || err.read_end >= 0) {
    if (Clock::now() >= deadline && !result.timed_out) {
      result.timed_out = true;
      kill(-pid, SIGKILL);
      if (reaped) break;  // a process outside the group holds the pipe open
    }
    std::array<pollfd, 3> fds{{{in.write_end, POLLOUT, 0}, {out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}}};
    poll(fds.data(), fds.size(), 20);
    if (in.write_end >= 0 && fds[0].revents != 0) feed(in.write_end, options.stdin_data, written);
    if (out.read_end >= 0 && fds[1].revents != 0) drain(out.read_end, result.out);
    if (err.read_end >= 0 && fds[2].revents != 0) drain(err.read_end, result.err);
    if (!reaped && waitpid(pid, &wait_status, WNOHANG) == pid) reaped = true;
    if (reaped && result.timed_out) break;
  }
  result.exit_status = asShellStatus(wait_status);
  result.signal = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;
}

/// A closed reader must give EPIPE, not kill the test program.
void ignoreBrokenPipes() {
  static const auto previous = std::signal(SIGPIPE, SIG_IGN);
  static_cast<void>(previous);
}

}  // namespace

RunOutput runProgram(const std::vector<std::string>& argv, const RunOptions& options) {
  ignoreBrokenPipes();
  Pipe in;
  Pipe out;
  Pipe err;
  const auto began = Clock::now();
  const pid_t pid = start(argv, options, in.read_end, out.write_end, err.write_end);
  Pipe::closeEnd(in.read_end);
  Pipe::closeEnd(out.write_end);
  Pipe::closeEnd(err.write_end);
  fcntl(in.write_end, F_SETFL, O_NONBLOCK);
  RunOutput result;
  relayUntilEnd(pid, in, out, err, options, result);
  result.duration = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
  return result;
}

RunOutput runCaisson(const std::vector<std::string>& args, const RunOptions& options) {
  std::vector<std::string> argv{caissonBinary()};
  argv.insert(argv.end(), args.begin(), args.end());
  return runProgram(argv, options);
}

nlohmann::json RunOutput::json() const { return nlohmann::json::parse(out, nullptr, false); }

std::string RunOutput::describe() const {
  std::string text = "exit status " + std::to_string(exit_status);
  if (signal != 0) text += std::string(" (") + strsignal(signal) + ")";
  if (timed_out) text += ", killed by the test after " + std::to_string(duration.count()) + " ms";
  text += "\n--- stdout ---\n" + out.substr(0, 4000) + "\n--- stderr ---\n" + err.substr(0, 4000);
  return text;
}

BackgroundProgram::BackgroundProgram(const std::vector<std::string>& argv, const RunOptions& options) {
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0) throw std::runtime_error("can't open /dev/null");
  pid_ = start(argv, options, nowhere, nowhere, nowhere);
  close(nowhere);
}

BackgroundProgram::~BackgroundProgram() {
  if (ended_) return;
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void BackgroundProgram::signal(int number) const {
  if (!ended_) kill(pid_, number);
}

std::optional<int> BackgroundProgram::wait(std::chrono::milliseconds timeout) {
  eventually(
      [this] {
        int wait_status = 0;
        if (!ended_ && waitpid(pid_, &wait_status, WNOHANG) == pid_) ended_ = asShellStatus(wait_status);
        return ended_.has_value();
      },
      timeout);
  return ended_;
}

std::chrono::steady_clock::time_point deadlineAfter(std::chrono::milliseconds timeout) {
  return std::chrono::steady_clock::now() + timeout * slowness();
}

void sleepFor(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

}  // namespace caisson::test
