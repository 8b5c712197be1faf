// A check of `caisson verify`: tries something in a real sandbox and evaluates the result.
//
// A check gets its sandboxes from a Context, which uses a runner: caisson::run, or in the tests one that removes a
// protection first. That proves that each check fails if the protection is missing.
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
  std::string detail;  ///< what was observed; for a skip, why it could not run
};

inline Verdict passed(std::string detail = {}) { return {CheckState::passed, std::move(detail)}; }
inline Verdict failed(std::string detail) { return {CheckState::failed, std::move(detail)}; }
inline Verdict skipped(std::string reason) { return {CheckState::skipped, std::move(reason)}; }

/// What to run, and in which sandbox. Defaults: no workspace, at most a minute.
struct CheckRun {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> settings;  ///< policy keys
  bool workspace = false;                                     ///< mount the context's directory as an overlay
  std::string input;
  std::string profile = "bash";
};

struct Observed {
  bool ran = false;     ///< the sandbox was built and the program started; false too if it was killed as an escape
  std::string refusal;  ///< why not
  int status = 0;       ///< exitStatus() of the result
  std::string out, err;
  RunResult result;

  [[nodiscard]] std::string describe() const;  ///< one line, for the details of a failed check
};

using Runner = std::function<Result<RunResult>(const Request&)>;

class Context {
 public:
  /// `helper`: a static caisson binary, available in sandboxes for attempts that a shell cannot make. `rungs`: weaker
  /// ones that every sandbox may take (isolation.may_be_missing).
  static Result<Context> create(Runner runner, std::string helper, std::vector<std::string> rungs = {});
  Context(Context&&) = default;
  Context& operator=(Context&&) = delete;
  ~Context();

  /// Runs a command in a sandbox.
  Observed run(const CheckRun& what);
  /// Runs a command in a session that is made for it and destroyed. Not through the runner.
  Observed runInSession(const CheckRun& what);
  /// Runs a shell script in a sandbox. `settings`: policy keys.
  Observed script(std::string_view text, std::vector<std::pair<std::string, std::string>> settings = {});
  /// Runs `caisson __inside WORDS...` in a sandbox.
  Observed inside(std::vector<std::string> words, std::vector<std::pair<std::string, std::string>> settings = {});

  /// A host file that no sandbox shows, and its content.
  [[nodiscard]] const std::string& canaryPath() const { return canary_path_; }
  [[nodiscard]] const std::string& secret() const { return secret_; }
  /// The host directory used by a CheckRun with `workspace`.
  [[nodiscard]] const std::string& workspacePath() const { return workspace_path_; }
  /// A descriptor without close-on-exec, which children inherit unless the sandbox closes it.
  [[nodiscard]] int leakyDescriptor() const { return leak_.get(); }

 private:
  Context() = default;
  /// The policy of a CheckRun.
  [[nodiscard]] Result<Policy> policyOf(const CheckRun& what) const;

  Runner runner_;
  std::string helper_;
  std::vector<std::string> rungs_;
  std::string base_, name_;  ///< our directory below the state directory
  std::string canary_path_, secret_, workspace_path_;
  sys::Fd leak_;
};

struct Check {
  std::string_view id;  ///< "security.read-only-root": stable, for scripts
  Category category = Category::security;
  std::string_view title;
  Verdict (*perform)(Context& context) = nullptr;
};

// --- evaluation ---

/// Evaluates the output of tryInside() (inside.h): passes if the attempt was refused, or the program ended by a signal
/// or limit; fails if it worked, did not run or was killed as an escape; skips if it is unavailable here.
Verdict contained(const Observed& observed);
/// Passes if the program ran, printed exactly this and exited with 0.
Verdict printed(const Observed& observed, std::string_view expected);

/// Whether this program is in /usr/bin, /bin or /usr/local/bin of the host, so that the sandbox can have it.
bool hostHas(const std::string& program);

}  // namespace caisson::verify
