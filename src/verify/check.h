// A check of `caisson verify`: really tries a thing inside a real sandbox and judges what came of it (SPEC V1).
//
// A check gets its sandboxes from a Context, and that from a runner: caisson::run, or in the tests one that takes a
// protection away first. So each check is shown to fail when what it checks is not there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "caisson/run.h"
#include "sys/fd.h"

namespace caisson::verify {

enum class Category : std::uint8_t { security, resources, network, functional, edge_cases, invariants, cve, escape };
inline constexpr std::size_t kCategories = 8;
std::string_view name(Category category);  ///< "SECURITY"

enum class CheckState : std::uint8_t { passed, failed, skipped };
std::string_view name(CheckState state);

struct Verdict {
  CheckState state = CheckState::failed;
  std::string detail;  ///< what was seen; for a skip, why it could not run
};

inline Verdict passed(std::string detail = {}) { return {CheckState::passed, std::move(detail)}; }
inline Verdict failed(std::string detail) { return {CheckState::failed, std::move(detail)}; }
inline Verdict skipped(std::string reason) { return {CheckState::skipped, std::move(reason)}; }

/// What to run, and in what kind of sandbox. Without further words: profile bash, no workspace, at most ten seconds.
struct CheckRun {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> settings;  ///< policy keys
  bool workspace = false;                                     ///< show the context's directory, as an overlay
  std::string input;
};

struct Observed {
  bool ran = false;     ///< the sandbox was built and the program started
  std::string refusal;  ///< why not
  int status = 0;       ///< as `caisson run` would exit
  std::string out, err;
  RunResult result;

  [[nodiscard]] std::string describe() const;  ///< for details of a failed check, one line
};

using Runner = std::function<Result<RunResult>(const Request&)>;

class Context {
 public:
  /// `helper`: a static caisson binary, shown in sandboxes as the program that tries what a shell can't.
  static Result<Context> create(Runner runner, std::string helper);
  Context(Context&&) = default;
  Context& operator=(Context&&) = delete;
  ~Context();

  Observed run(const CheckRun& wish);
  Observed script(std::string_view text, std::vector<std::pair<std::string, std::string>> settings = {});
  /// `caisson __inside WORDS...` in a sandbox.
  Observed inside(std::vector<std::string> words, std::vector<std::pair<std::string, std::string>> settings = {});

  /// A host file that no sandbox is shown, and what it holds.
  [[nodiscard]] const std::string& canaryPath() const { return canary_path_; }
  [[nodiscard]] const std::string& secret() const { return secret_; }
  /// The host directory that is the workspace of a CheckRun with one.
  [[nodiscard]] const std::string& workspacePath() const { return workspace_path_; }
  /// A descriptor of ours that is inherited by whatever we start, unless somebody closes it.
  [[nodiscard]] int leakyDescriptor() const { return leak_.get(); }

 private:
  Context() = default;

  Runner runner_;
  std::string helper_;
  std::string base_, name_;  ///< directory of ours below the state directory
  std::string canary_path_, secret_, workspace_path_;
  sys::Fd leak_;
};

struct Check {
  std::string_view id;  ///< "security.read-only-root": stable, for scripts
  Category category = Category::security;
  std::string_view title;
  Verdict (*perform)(Context& context) = nullptr;
};

// --- judging ---

/// The program ran and was refused what it tried: its output does not begin with "done".
Verdict contained(const Observed& observed);
/// The program ran and printed exactly this.
Verdict printed(const Observed& observed, std::string_view expected);

/// Whether this program is on the host, so that the sandbox can have it.
bool hostHas(const std::string& program);

}  // namespace caisson::verify
