// `caisson clean [--all]`: removes leftovers of crashed runs; --all also stops and removes everything.
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "audit/live.h"
#include "audit/log.h"
#include "audit/reader.h"
#include "caisson/session.h"
#include "cli/output.h"
#include "cli/own_program.h"
#include "cli/safe_text.h"
#include "cli/verb.h"
#include "supervise/disk/caches.h"
#include "supervise/disk/run_store.h"
#include "sys/cgroup.h"
#include "sys/root_dir.h"
#include "sys/state_home.h"

namespace caisson::cli {
namespace {

constexpr Option kAll{.name = "all", .help = "Also stop and remove every live sandbox and session of this user."};
constexpr Option kOptions[] = {kAll};
constexpr OptionGroup kGroups[] = {{"Options", kOptions}};

constexpr std::chrono::seconds kUnusedCache = std::chrono::hours(24 * 30);

struct Cleaned {
  std::vector<std::string> removed;
  std::vector<Error> problems;
};

bool send(const audit::LiveSandbox& sandbox, int signal) {
  return ::syscall(SYS_pidfd_send_signal, sandbox.pidfd.get(), signal, nullptr, 0) == 0;
}

bool endsWithin(const audit::LiveSandbox& sandbox, int milliseconds) {
  pollfd wait{sandbox.pidfd.get(), POLLIN, 0};
  return ::poll(&wait, 1, milliseconds) == 1;
}

/// Sends each supervisor SIGTERM, and SIGKILL if it still runs a second later; its sandbox ends with it.
void stopLive(Cleaned& cleaned) {
  auto live = audit::liveSandboxes(audit::logDirectory());
  if (!live) {
    cleaned.problems.push_back(live.error());
    return;
  }
  constexpr int kTimeoutMs = 1000;
  std::erase_if(*live, [](const audit::LiveSandbox& sandbox) { return sandbox.supervisor == ::getpid(); });
  for (const audit::LiveSandbox& sandbox : *live) send(sandbox, SIGTERM);
  for (const audit::LiveSandbox& sandbox : *live) {
    if (!endsWithin(sandbox, kTimeoutMs)) send(sandbox, SIGKILL);
    if (endsWithin(sandbox, kTimeoutMs)) {
      cleaned.removed.push_back("live sandbox " + sandbox.id + " (process " + std::to_string(sandbox.supervisor) + ")");
    } else {
      cleaned.problems.push_back(plainError(Stage::supervise, "kill", sandbox.id, "its process does not end"));
    }
  }
}

/// Directories of a `caisson verify` that crashed: verify-PID-N.
void removeVerifyRemains(Cleaned& cleaned) {
  const auto root = sys::RootDir::open(sys::stateHome());
  if (!root) return;
  const auto entries = root->list("");
  if (!entries) return;
  for (const auto& entry : *entries) {
    constexpr std::string_view kPrefix = "verify-";
    if (entry.type != sys::FileType::directory || !entry.name.starts_with(kPrefix)) continue;
    const pid_t pid = std::atoi(entry.name.c_str() + kPrefix.size());
    if (pid > 0 && (::kill(pid, 0) == 0 || errno != ESRCH)) continue;
    if (const auto removed = root->removeTree(entry.name); !removed) {
      cleaned.problems.push_back(removed.error());
    } else {
      cleaned.removed.push_back("directory " + entry.name);
    }
  }
}

Cleaned cleanUp(bool all) {
  Cleaned cleaned;
  const auto add = [&](std::string_view kind, const std::vector<std::string>& names) {
    for (const std::string& one : names) cleaned.removed.push_back(std::string(kind) + " " + one);
  };
  if (all) stopLive(cleaned);
  if (const auto stores = supervise::removeAbandonedStores()) {
    add("overlay store", *stores);
  } else {
    cleaned.problems.push_back(stores.error());
  }
  const sys::CgroupBase cgroups = sys::CgroupBase::find();
  add("control group", sys::removeAbandonedCgroups(cgroups));
  if (auto sessions = openSessions()) {
    if (const auto ids = sessions->clean(all)) {
      add("session", *ids);
    } else {
      cleaned.problems.push_back(ids.error());
    }
  } else {
    cleaned.problems.push_back(sessions.error());
  }
  add("control group",
      sys::removeEmptyKeptCgroups(cgroups, std::chrono::hours(1)));  // after the sessions, which remove their own
  if (const auto caches = supervise::removeCaches(all ? std::chrono::seconds(0) : kUnusedCache)) {
    add("cache", *caches);
  } else {
    cleaned.problems.push_back(caches.error());
  }
  removeVerifyRemains(cleaned);
  return cleaned;
}

int perform(const Arguments& arguments) {
  if (sys::stateHome().empty())
    return printError(
        plainError(Stage::state, "clean", "", "neither CAISSON_HOME nor HOME is set", "set CAISSON_HOME"));
  const bool all = arguments.has(kAll);
  const Cleaned cleaned = cleanUp(all);
  std::string text;
  for (const std::string& one : cleaned.removed) text += "removed " + safeLine(one) + "\n";
  if (cleaned.removed.empty()) text = "There was nothing to clean.\n";
  int status = print(text);
  for (const Error& problem : cleaned.problems) status = printError(problem);
  if (!cleaned.removed.empty() || all) {
    auto log = audit::Log::open();
    const auto written = log ? log->append({audit::EventType::clean,
                                            audit::Severity::info,
                                            {},
                                            audit::Fields().number("removed", cleaned.removed.size()).flag("all", all)})
                             : Result<void>(std::unexpect, log.error());
    if (!written) status = printError(written.error());
  }
  return status;
}

}  // namespace

constinit const Verb kClean{
    .path = "clean",
    .summary = "Remove what crashed runs left; with --all stop everything",
    .description =
        "Removes overlay stores, control groups, expired sessions and directories whose caisson is gone, and says "
        "what it removed. Other runs are not disturbed, unless --all stops them.",
    .topic = Topic::machine,
    .syntax = {.groups = kGroups},
    .perform = perform,
};

}  // namespace caisson::cli
