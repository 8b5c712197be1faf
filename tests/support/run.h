// Runs the caisson under test like a user, and captures everything a user can see.
//
//   const RunOutput output = runCaisson({"run", "--json", "--", "id", "-u"});
//   EXPECT_EQ(output.exit_status, 0) << output.describe();
//   EXPECT_EQ(output.json()["stdout"], "1000\n");
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace caisson::test {

struct RunOptions {
  std::string stdin_data;                    ///< written to standard input, then end of file
  std::map<std::string, std::string> env;    ///< added to the test's environment, or replacing its variables
  std::vector<std::string> unset;            ///< variables to remove
  std::string cwd;                           ///< working directory; empty: the test's
  std::chrono::milliseconds timeout{60000};  ///< then the whole process group is killed
  std::vector<int> close;                    ///< descriptors that are closed at the start (0, 1, 2)
};

struct RunOutput {
  int exit_status = -1;  ///< as in a shell: the exit status, or 128+n
  int signal = 0;        ///< the signal that killed the program, or 0
  bool timed_out = false;
  std::string out, err;
  std::chrono::milliseconds duration{0};

  /// Standard output as JSON; a discarded value (json().is_discarded()) if it is not JSON.
  [[nodiscard]] nlohmann::json json() const;
  /// Status and both streams, for failure messages.
  [[nodiscard]] std::string describe() const;
};

/// Runs `caisson args...` and waits until it exits.
RunOutput runCaisson(const std::vector<std::string>& args, const RunOptions& options = {});

/// Runs any program (argv[0] is looked up on PATH) the same way.
RunOutput runProgram(const std::vector<std::string>& argv, const RunOptions& options = {});

/// A program that keeps running, to be signalled or killed by the test. It leads its own process group; the destructor
/// kills that group and reaps the leader. Its output is discarded.
class BackgroundProgram {
 public:
  explicit BackgroundProgram(const std::vector<std::string>& argv, const RunOptions& options = {});
  ~BackgroundProgram();
  BackgroundProgram(const BackgroundProgram&) = delete;
  BackgroundProgram& operator=(const BackgroundProgram&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// The wait status if it exited in time, in the format of RunOutput::exit_status.
  std::optional<int> wait(std::chrono::milliseconds timeout);

 private:
  pid_t pid_ = -1;
  std::optional<int> ended_;
};

/// Polls until `condition` holds or the timeout expires; returns whether it held.
template <class Condition>
bool eventually(Condition condition, std::chrono::milliseconds timeout = std::chrono::seconds(5));

void sleepFor(std::chrono::milliseconds time);
/// When a wait of `timeout` that begins now is over; `timeout` is multiplied by slowness().
std::chrono::steady_clock::time_point deadlineAfter(std::chrono::milliseconds timeout);

template <class Condition>
bool eventually(Condition condition, std::chrono::milliseconds timeout) {
  const auto deadline = deadlineAfter(timeout);
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    sleepFor(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace caisson::test
