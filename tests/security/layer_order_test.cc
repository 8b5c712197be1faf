// The order in which the layers are applied, from the system calls of a launch. A layer in the wrong place can be
// undone or bypassed by what comes after it.
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <optional>

#include "security/attack.h"
#include "security/call_trace.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

constexpr const char* kProgram = "/usr/bin/true";
constexpr std::uint64_t kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;

bool is(const TracedCall& call, std::initializer_list<long> numbers) {
  return std::ranges::find(numbers, call.number) != numbers.end();
}

bool isMount(const TracedCall& call) {
  return is(call, {SYS_mount, SYS_move_mount, SYS_open_tree, SYS_fsmount, SYS_mount_setattr, SYS_pivot_root});
}

std::uint64_t cloneFlags(const TracedCall& call) {
  if (call.number == SYS_clone3) return call.attributes.empty() ? 0 : call.attributes[0];
  return call.number == SYS_clone ? call.arguments[0] : 0;
}

/// Finds positions in a trace; a missing call is a failure that names it.
class Launch {
 public:
  explicit Launch(const std::vector<TracedCall>& calls) : calls_(calls) {
    const auto made = std::ranges::find_if(
        calls, [](const TracedCall& call) { return (cloneFlags(call) & CLONE_NEWPID) != 0 && call.result > 0; });
    if (made != calls.end()) {
      made_ = static_cast<std::size_t>(made - calls.begin());
      init_ = static_cast<pid_t>(made->result);
    }
    // The last exec that succeeded is the payload's: an ordinary user cannot read its path out of the process.
    for (std::size_t at = made_.value_or(calls.size()); at < calls.size(); ++at) {
      if (!is(calls[at], {SYS_execve, SYS_execveat}) || calls[at].result != 0) continue;
      executed_ = at;
      payload_ = calls[at].thread;
    }
  }

  [[nodiscard]] pid_t init() const { return init_; }
  [[nodiscard]] pid_t payload() const { return payload_; }
  [[nodiscard]] std::optional<std::size_t> made() const { return made_; }
  [[nodiscard]] std::optional<std::size_t> executed() const { return executed_; }

  template <class Test>
  [[nodiscard]] std::optional<std::size_t> first(pid_t thread, Test test) const {
    for (std::size_t at = 0; at < calls_.size(); ++at)
      if (calls_[at].thread == thread && test(calls_[at])) return at;
    return std::nullopt;
  }
  template <class Test>
  [[nodiscard]] std::optional<std::size_t> last(pid_t thread, Test test) const {
    for (std::size_t at = calls_.size(); at-- > 0;)
      if (calls_[at].thread == thread && test(calls_[at])) return at;
    return std::nullopt;
  }

 private:
  const std::vector<TracedCall>& calls_;
  std::optional<std::size_t> made_, executed_;
  pid_t init_ = -1, payload_ = -1;
};

struct Step {
  const char* name;
  std::optional<std::size_t> first, last;  ///< where it begins and ends in the trace
};

bool isSetsid(const TracedCall& call) { return call.number == SYS_setsid; }
bool isLandlock(const TracedCall& call) { return call.number == SYS_landlock_restrict_self; }
bool isNoNewPrivileges(const TracedCall& call) {
  return call.number == SYS_prctl && call.arguments[0] == PR_SET_NO_NEW_PRIVS;
}
bool dropsCapabilities(const TracedCall& call) {
  const bool dropped =
      call.number == SYS_prctl && (call.arguments[0] == PR_CAPBSET_DROP || call.arguments[0] == PR_CAP_AMBIENT);
  return dropped || call.number == SYS_capset;
}
bool isFilter(const TracedCall& call) {
  return call.number == SYS_seccomp && call.arguments[0] == SECCOMP_SET_MODE_FILTER;
}

std::vector<Step> stepsOf(const std::vector<TracedCall>& calls) {
  const Launch launch(calls);
  // pid 1 closes more once the payload runs.
  const auto started = launch.first(launch.payload(), [](const TracedCall&) { return true; }).value_or(calls.size());
  std::optional<std::size_t> closed;
  for (std::size_t at = 0; at < started; ++at) {
    if (calls[at].thread == launch.init() && calls[at].number == SYS_close_range) closed = at;
  }
  const auto both = [&](const char* name, pid_t thread, auto test) {
    return Step{name, launch.first(thread, test), launch.last(thread, test)};
  };
  return {{"namespaces", launch.made(), launch.made()},
          both("setsid", launch.init(), isSetsid),
          both("mounts", launch.init(), isMount),
          {"close descriptors", closed, closed},
          both("Landlock", launch.payload(), isLandlock),
          both("no_new_privs", launch.payload(), isNoNewPrivileges),
          both("capabilities", launch.payload(), dropsCapabilities),
          both("seccomp", launch.payload(), isFilter),
          {"exec", launch.executed(), launch.executed()}};
}

/// In a session pid 1 builds the root, a thread of it enters the Landlock domain, and each command that this thread
/// starts inherits the domain.
std::vector<Step> stepsOfSessionCommand(const std::vector<TracedCall>& calls) {
  const Launch launch(calls);
  const auto find = [&](auto test) -> std::optional<std::size_t> {
    const auto found = std::ranges::find_if(calls, test);
    if (found == calls.end()) return std::nullopt;
    return static_cast<std::size_t>(found - calls.begin());
  };
  const auto domain = find(isLandlock);
  const auto listener = find([](const TracedCall& call) {
    return isFilter(call) && (call.arguments[1] & SECCOMP_FILTER_FLAG_NEW_LISTENER) != 0;
  });
  const pid_t command = listener ? calls[*listener].thread : -1;
  std::optional<std::size_t> closed;
  for (std::size_t at = 0; at < domain.value_or(0); ++at) {
    if (calls[at].thread == launch.init() && calls[at].number == SYS_close_range) closed = at;
  }
  const auto both = [&](const char* name, pid_t thread, auto test) {
    return Step{name, launch.first(thread, test), launch.last(thread, test)};
  };
  const auto executed = launch.last(
      command, [](const TracedCall& call) { return is(call, {SYS_execve, SYS_execveat}) && call.result == 0; });
  return {{"namespaces", launch.made(), launch.made()},
          both("setsid", launch.init(), isSetsid),
          both("mounts", launch.init(), isMount),
          {"close descriptors", closed, closed},
          {"Landlock", domain, domain},
          both("no_new_privs", command, isNoNewPrivileges),
          both("capabilities", command, dropsCapabilities),
          both("seccomp", command, isFilter),
          {"exec", executed, executed}};
}

/// The first step that is missing or begins before the one ahead of it has ended; "" if all are in order.
std::string wrongStep(const std::vector<Step>& steps) {
  for (std::size_t at = 0; at < steps.size(); ++at) {
    if (!steps[at].first) return std::string(steps[at].name) + " is missing";
    if (at > 0 && *steps[at].first <= *steps[at - 1].last)
      return std::string(steps[at].name) + " comes before the end of " + steps[at - 1].name;
  }
  return "";
}

TEST(LayerOrder, OfALaunchIsNamespacesMountsLandlockCapabilitiesSeccomp) {
  CONFORMS("R-LEVEL-10");
  const TempDir state;
  const CallTrace trace = traceCalls({"/usr/bin/env", "CAISSON_HOME=" + state.path(), caissonBinary(), "run", "--quiet",
                                      "--workspace", ":none", "--", kProgram});
  ASSERT_EQ(trace.exit_status, 0);
  EXPECT_EQ(wrongStep(stepsOf(trace.calls)), "");

  const Launch launch(trace.calls);
  ASSERT_TRUE(launch.made() && launch.executed());
  EXPECT_EQ(cloneFlags(trace.calls[*launch.made()]) & kNamespaces, kNamespaces);
  // The network namespace is made beside the mounts, and entered before any restriction.
  const auto network = [](const TracedCall& call) {
    return (is(call, {SYS_setns}) && (call.arguments[1] & CLONE_NEWNET) != 0) ||
           (is(call, {SYS_unshare}) && (call.arguments[0] & CLONE_NEWNET) != 0);
  };
  const auto entered = launch.last(launch.init(), network);
  const auto restricted =
      launch.first(launch.payload(), [](const TracedCall& call) { return call.number == SYS_landlock_restrict_self; });
  ASSERT_TRUE(restricted);
  if ((cloneFlags(trace.calls[*launch.made()]) & CLONE_NEWNET) == 0) {
    ASSERT_TRUE(entered);
    EXPECT_LT(*entered, *restricted);
  }
  // No program runs in the new namespaces before the payload's last layer.
  for (std::size_t at = *launch.made(); at < *launch.executed(); ++at) {
    const TracedCall& call = trace.calls[at];
    if (call.thread != launch.init() && call.thread != launch.payload()) continue;
    EXPECT_FALSE(is(call, {SYS_execve, SYS_execveat}) && call.result == 0) << call.text;
  }
}

TEST(LayerOrder, OfASessionCommandIsTheSame) {
  CONFORMS("R-LEVEL-10");
  const TempDir state;
  const std::string script =
      "id=$(\"$0\" session create --workspace :none) && \"$0\" session exec \"$id\" -- /usr/bin/true; status=$?; "
      "\"$0\" session destroy \"$id\" && exit $status";
  const CallTrace trace =
      traceCalls({"/usr/bin/env", "CAISSON_HOME=" + state.path(), "/bin/sh", "-c", script, caissonBinary()});
  ASSERT_EQ(trace.exit_status, 0);
  const std::vector<Step> steps = stepsOfSessionCommand(trace.calls);
  EXPECT_EQ(wrongStep(steps), "");
  // No program runs in the command's process before its last layer; pid 1 executes only caisson's own init before it.
  ASSERT_TRUE(steps.back().first && steps[steps.size() - 2].last);
  const pid_t command = trace.calls[*steps.back().first].thread;
  for (std::size_t at = 0; at < *steps[steps.size() - 2].last; ++at) {
    const TracedCall& call = trace.calls[at];
    EXPECT_FALSE(call.thread == command && is(call, {SYS_execve, SYS_execveat}) && call.result == 0) << call.text;
  }
}

/// Each command tries a forbidden write with all its restrictions but the filter, and then whether the filter holds.
TEST(SelfTestOfASession, IsMadeByEachCommand) {
  CONFORMS("R-LEVEL-12");
  const TempDir state;
  const std::string script =
      "id=$(\"$0\" session create --workspace :none $1) && \"$0\" session exec \"$id\" -- /usr/bin/true && "
      "\"$0\" session exec \"$id\" -- /usr/bin/true; status=$?; \"$0\" session destroy \"$id\" && exit $status";
  const std::string off = state.write("off.toml", "extends = 'bash'\nisolation.self_test = false\n");
  for (const std::string& policy : {std::string(), "--policy=" + off}) {
    const CallTrace trace = traceCalls(
        {"/usr/bin/env", "CAISSON_HOME=" + (state / "home"), "/bin/sh", "-c", script, caissonBinary(), policy});
    ASSERT_EQ(trace.exit_status, 0);
    int commands = 0, tested = 0;
    for (std::size_t at = 0; at < trace.calls.size(); ++at) {
      const TracedCall& filter = trace.calls[at];
      if (!isFilter(filter) || (filter.arguments[1] & SECCOMP_FILTER_FLAG_NEW_LISTENER) == 0) continue;
      ++commands;
      bool wrote = false, probed = false;
      for (std::size_t other = 0; other < trace.calls.size(); ++other) {
        const TracedCall& call = trace.calls[other];
        if (call.thread != filter.thread) continue;
        constexpr std::uint64_t kNewFile = O_WRONLY | O_CREAT | O_EXCL;
        wrote = wrote || (other < at && call.number == SYS_openat && (call.arguments[2] & kNewFile) == kNewFile &&
                          call.result < 0);
        probed = probed || (other > at && call.number == SYS_openat2 && call.result == -ENOSYS);
      }
      tested += wrote && probed ? 1 : 0;
    }
    EXPECT_EQ(commands, 2) << policy;
    EXPECT_EQ(tested, policy.empty() ? 2 : 0) << policy;
  }
}

/// Level `process` has the same layers on the host's root.
TEST(LayerOrder, OfALaunchAtLevelProcessIsTheSame) {
  CONFORMS("R-LEVEL-10");
  const TempDir state;
  const CallTrace trace = traceCalls({"/usr/bin/env", "CAISSON_HOME=" + state.path(), caissonBinary(), "run", "--quiet",
                                      "--level", "process", "--workspace", ":none", "--", kProgram});
  ASSERT_EQ(trace.exit_status, 0);
  EXPECT_EQ(wrongStep(stepsOf(trace.calls)), "");
}

/// The comparison itself: steps in the wrong order are named, not only missing ones.
TEST(LayerOrder, WrongOrderIsNoticed) {
  const std::vector<Step> right{{"first", 1, 3}, {"second", 4, 4}, {"third", 6, 9}};
  EXPECT_EQ(wrongStep(right), "");
  std::vector<Step> swapped = right;
  std::swap(swapped[0], swapped[1]);
  EXPECT_EQ(wrongStep(swapped), "first comes before the end of second");
  std::vector<Step> overlapping = right;
  overlapping[1].first = 2;
  EXPECT_EQ(wrongStep(overlapping), "second comes before the end of first");
}

/// Landlock scoping is part of the same ruleset, so it cannot come later.
TEST(LayerOrder, LandlockScopingIsInTheRuleset) {
  CONFORMS("R-LEVEL-10");
  const TempDir state;
  const CallTrace trace = traceCalls({"/usr/bin/env", "CAISSON_HOME=" + state.path(), caissonBinary(), "run", "--quiet",
                                      "--workspace", ":none", "--", kProgram});
  const auto made = std::ranges::find_if(trace.calls, [](const TracedCall& call) {
    return call.number == SYS_landlock_create_ruleset && call.arguments[2] == 0;
  });
  ASSERT_NE(made, trace.calls.end());
  constexpr std::uint64_t kSizeWithScoping = 24;
  requireOrSkip(made->arguments[1] >= kSizeWithScoping, "the kernel's Landlock has no scoping");
  const RunOutput output =
      runCaisson({"run", "--json", "--workspace", ":none", "--", kProgram}, {.env = {{"CAISSON_HOME", state.path()}}});
  EXPECT_EQ(output.json()["layers"]["landlock_scoping"], "abstract sockets and signals") << output.describe();
  // One ruleset only: nothing could add scoping later.
  EXPECT_EQ(std::ranges::count_if(
                trace.calls,
                [](const TracedCall& call) { return call.number == SYS_landlock_restrict_self && call.result == 0; }),
            1);
  if (!runsAsRoot()) return;  // an ordinary user cannot read the ruleset out of the process
  ASSERT_GE(made->attributes.size(), 3U);
  EXPECT_NE(made->attributes[2], 0U) << "scoped";
}

TEST(LayerOrder, MissingLayerIsDetected) {
  CONFORMS("R-LEVEL-10");
  if (!mayWeaken()) GTEST_SKIP() << "a weakened sandbox is never given to root";
  const TempDir state;
  for (const auto& [protection, step] :
       {std::pair{"landlock,self-test", "Landlock is missing"},
        std::pair{"no-new-privileges,capabilities,self-test", "no_new_privs is missing"},
        std::pair{"capabilities,self-test", "capabilities is missing"},
        std::pair{"seccomp,self-test", "seccomp is missing"},
        std::pair{"closed-descriptors,self-test", "close descriptors is missing"}}) {
    const CallTrace trace = traceCalls({"/usr/bin/env", "CAISSON_HOME=" + state.path(), weakenedPath(), protection,
                                        "--workspace", ":none", "--", kProgram});
    EXPECT_EQ(wrongStep(stepsOf(trace.calls)), step) << "without " << protection << ", status " << trace.exit_status;
  }
}

}  // namespace
}  // namespace caisson::test
