// A terminal with a simulated user: a pty whose other end runs a program as session leader.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::test {

struct TerminalSize {
  unsigned short rows = 24, columns = 80;
};

class Terminal {
 public:
  /// Starts `argv` in `cwd` with the terminal as its controlling one and as 0, 1 and 2.
  Terminal(const std::vector<std::string>& argv, const std::string& cwd, TerminalSize size = {});
  /// Kills the program if it still runs.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(std::string_view keys) const;
  void resize(TerminalSize size) const;
  void signal(int number) const;
  /// Whether `text` appears on the screen within the time.
  bool shows(const std::string& text, std::chrono::milliseconds timeout = std::chrono::seconds(20));
  /// Everything that appeared on the screen so far.
  [[nodiscard]] const std::string& screen() const { return screen_; }
  /// Exit status as in a shell, if the program exited within the time.
  std::optional<int> wait(std::chrono::milliseconds timeout = std::chrono::seconds(20));
  [[nodiscard]] std::string name() const;
  [[nodiscard]] termios settings() const;

 private:
  void readWhatIsThere();

  int master_ = -1;
  int slave_ = -1;
  pid_t pid_ = -1;
  std::optional<int> ended_;
  std::string screen_;
};

bool sameSettings(const termios& one, const termios& other);

}  // namespace caisson::test
