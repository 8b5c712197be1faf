#include "functional/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <csignal>
#include <stdexcept>

#include "support/run.h"

namespace caisson::test {
namespace {

winsize asWinsize(TerminalSize size) {
  winsize result{};
  result.ws_row = size.rows;
  result.ws_col = size.columns;
  return result;
}

}  // namespace

Terminal::Terminal(const std::vector<std::string>& argv, const std::string& cwd, TerminalSize size) {
  const winsize window = asWinsize(size);
  if (openpty(&master_, &slave_, nullptr, nullptr, &window) != 0) throw std::runtime_error("openpty failed");
  fcntl(master_, F_SETFD, FD_CLOEXEC);
  fcntl(slave_, F_SETFD, FD_CLOEXEC);
  std::vector<std::string> copies = argv;
  std::vector<char*> pointers;
  for (std::string& text : copies) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ > 0) return;
  if (setsid() < 0 || ioctl(slave_, TIOCSCTTY, 0) != 0 || chdir(cwd.c_str()) != 0) _exit(121);
  for (const int standard : {0, 1, 2}) dup2(slave_, standard);
  execvp(pointers[0], pointers.data());
  _exit(127);
}

Terminal::~Terminal() {
  if (!ended_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(master_);
  close(slave_);
}

void Terminal::type(std::string_view keys) const {
  while (!keys.empty()) {
    const ssize_t count = write(master_, keys.data(), keys.size());
    if (count <= 0) return;
    keys.remove_prefix(static_cast<std::size_t>(count));
  }
}

void Terminal::resize(TerminalSize size) const {
  const winsize window = asWinsize(size);
  ioctl(master_, TIOCSWINSZ, &window);
}

void Terminal::signal(int number) const {
  if (!ended_) kill(pid_, number);
}

void Terminal::readWhatIsThere() {
  pollfd ready{master_, POLLIN, 0};
  while (poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) != 0) {
    std::array<char, 4096> buffer;  // NOLINT: filled by read
    const ssize_t count = read(master_, buffer.data(), buffer.size());
    if (count <= 0) return;
    screen_.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

bool Terminal::shows(const std::string& text, std::chrono::milliseconds timeout) {
  return eventually(
      [&] {
        readWhatIsThere();
        return screen_.find(text) != std::string::npos;
      },
      timeout);
}

std::optional<int> Terminal::wait(std::chrono::milliseconds timeout) {
  eventually(
      [&] {
        readWhatIsThere();
        int status = 0;
        if (!ended_ && waitpid(pid_, &status, WNOHANG) == pid_) {
          ended_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        }
        return ended_.has_value();
      },
      timeout);
  readWhatIsThere();
  return ended_;
}

std::string Terminal::name() const {
  std::array<char, PATH_MAX> buffer{};
  return ttyname_r(slave_, buffer.data(), buffer.size()) == 0 ? buffer.data() : "";
}

termios Terminal::settings() const {
  termios result{};
  tcgetattr(slave_, &result);
  return result;
}

bool sameSettings(const termios& one, const termios& other) {
  for (int index = 0; index < NCCS; ++index) {
    if (one.c_cc[index] != other.c_cc[index]) return false;
  }
  return one.c_iflag == other.c_iflag && one.c_oflag == other.c_oflag && one.c_cflag == other.c_cflag &&
         one.c_lflag == other.c_lflag;
}

}  // namespace caisson::test
