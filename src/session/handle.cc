#include "session/handle.h"

#include <algorithm>
#include <cmath>

#include "approval/owner.h"
#include "policy/limits.h"
#include "policy/validate.h"
#include "session/execution.h"
#include "session/kept_plan.h"

namespace caisson::session {
namespace {

Result<void> checkRequest(const ExecRequest& request) {
  if (request.command.empty() || request.command.front().empty()) {
    return fail(plainError(Stage::usage, "session exec", "", "no command given", "name a program and its arguments"));
  }
  const auto hasNul = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  if (std::any_of(request.command.begin(), request.command.end(), hasNul) || hasNul(request.working_directory)) {
    return fail(plainError(Stage::usage, "session exec", request.command.front(), "an argument contains a NUL byte",
                           "no program can receive that; pass the data by standard input"));
  }
  for (const auto& [name, value] : request.environment) {
    if (name.empty() || name.find('=') != std::string::npos || hasNul(name) || hasNul(value)) {
      return fail(plainError(Stage::usage, "session exec", name, "not a usable environment variable"));
    }
  }
  if (!request.working_directory.empty() && request.working_directory.front() != '/') {
    return fail(plainError(Stage::usage, "session exec", request.working_directory, "not an absolute path",
                           "name a directory inside, such as /workspace/src"));
  }
  return {};
}

/// A time-out for one command: as a policy could ask for it now. The rest of the policy was held against the ceilings
/// when the session was made.
Result<void> checkTimeout(const policy::Policy& policy, double seconds) {
  const auto owner = approval::loadOwner();
  if (!owner) return fail(owner.error());
  policy::Ceilings ceilings = approval::noCeilings();
  ceilings.wall_seconds = owner->ceilingsAt(policy.isolation.level).wall_seconds;
  policy::Policy asked = policy;
  asked.resources.wall_seconds = seconds;
  return policy::validate(asked, ceilings);
}

}  // namespace

void adaptPlan(plan::Plan& plan, const ExecRequest& request) {
  for (const auto& [name, value] : request.environment) {
    std::erase_if(plan.environment, [&](const std::string& one) { return one.starts_with(name + "="); });
    plan.environment.push_back(name + "=" + value);
  }
  if (!request.working_directory.empty()) plan.working_directory = request.working_directory;
}

Result<sys::Fd> Handle::lock() {
  auto lock = lockFile(directory_, kLockFile, true);
  if (!isCurrent(store_->place(), id(), directory_)) {
    return fail(plainError(Stage::state, "session", id(), "the session was destroyed",
                           "`caisson session list` shows the sessions of this user"));
  }
  if (!lock) return lock;
  auto metadata = readMetadata(directory_);
  if (!metadata) return fail(metadata.error());
  metadata_ = std::move(*metadata);
  return lock;
}

Result<std::optional<Connection>> Handle::startSandbox() {
  auto held = lock();
  if (!held) return fail(held.error());
  auto opened = Connection::open(directory_);  // somebody else may have started it while we waited
  if (!opened || *opened) return opened;
  if (metadata_.secondsLeft(Moment::now()) <= 0) {
    return fail(plainError(Stage::state, "session", id(), "the session's time is over", "make a new one"));
  }
  if (auto ended = endSandbox(directory_); !ended) return fail(ended.error());
  recordEndedCommands();
  planner_.reset();
  auto plan = this->plan({{"true"}, false});
  if (!plan) return fail(plan.error());
  auto started = session::startSandbox(store_->place(), directory_, metadata_, *plan);
  if (!started) return fail(started.error());
  store_->adopt(*started);
  opened = Connection::open(directory_);
  if (opened && !*opened) return fail(goneError("connect", id()));
  return opened;
}

Result<const Connection*> Handle::connect() {
  if (connection_) return &*connection_;
  store_->reap();
  auto opened = Connection::open(directory_);
  if (!opened) return fail(opened.error());
  if (!*opened) opened = startSandbox();
  if (!opened) return fail(opened.error());
  connection_ = std::move(**opened);
  return &*connection_;
}

Result<Planner*> Handle::planner() {
  if (!planner_) {
    auto planner = Planner::observe(directory_, metadata_);
    if (!planner) return fail(planner.error());
    planner_ = std::move(*planner);
  }
  return &*planner_;
}

Result<plan::Plan> Handle::plan(const plan::Command& command) {
  auto planner = this->planner();
  if (!planner) return fail(planner.error());
  return (*planner)->plan(metadata_, command);
}

Result<plan::Plan> Handle::planFor(const ExecRequest& request) {
  auto planner = this->planner();
  if (!planner) return fail(planner.error());
  auto plan = (*planner)->planCommand(metadata_, {request.command, request.interactive});
  if (plan) adaptPlan(*plan, request);
  return plan;
}

Result<void> checkExec(const ExecRequest& request, const policy::Policy& policy) {
  if (auto checked = checkRequest(request); !checked) return checked;
  if (!request.timeout_seconds) return {};
  return checkTimeout(policy, *request.timeout_seconds);
}

Result<RunResult> Handle::exec(const ExecRequest& request) {
  if (auto checked = checkExec(request, metadata_.policy); !checked) return fail(checked.error());
  if (auto reviewed = reviewHosts(); !reviewed) return fail(reviewed.error());
  std::string notice;
  if (metadata_.auto_checkpoint) {
    auto made = checkpointIfChanged();
    if (!made) return fail(made.error());
    notice = *std::move(made);
  }
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto connection = connect();
    if (!connection) return fail(connection.error());
    auto plan = planFor(request);
    if (!plan) return fail(plan.error());
    const auto asker = askAboutHosts(request);
    auto ran = execute({.place = store_->place(),
                        .directory = directory_,
                        .metadata = metadata_,
                        .plan = *plan,
                        .connection = **connection,
                        .record = record_,
                        .whole = [this] { return this->plan({{"true"}, false}); },
                        .asker = asker.get(),
                        .complete =
                            [&](RunResult& result) {
                              addNetworkRecord(result);
                              if (!notice.empty()) result.notices.push_back(notice);
                            }},
                       request);
    if (!ran) return fail(ran.error());
    if (*ran) return std::move(**ran);
    disconnect();  // ended by a checkpoint, a restore, its own time: start it again
  }
  return fail(goneError("session exec", id()));
}

void Handle::keepPlan() {
  if (const auto held = lock()) session::keepPlan(directory_, metadata_);
}

Result<void> Handle::renew(double ttl_seconds) {
  constexpr double kMaxTtl = 10.0 * 366 * 86400;
  if (!(ttl_seconds > 0) || ttl_seconds > kMaxTtl) {
    return fail(plainError(Stage::usage, "session renew", id(), "not a usable time", "give a time such as 30m or 2h"));
  }
  auto held = lock();
  if (!held) return fail(held.error());
  metadata_.expires = Moment::now();
  metadata_.expires.wall_ns += static_cast<std::int64_t>(ttl_seconds * 1e9);
  metadata_.expires.boot_ns += static_cast<std::int64_t>(ttl_seconds * 1e9);
  if (auto written = writeMetadata(directory_, metadata_); !written) return written;
  auto opened = Connection::open(directory_);
  if (!opened) return fail(opened.error());
  if (!*opened) return {};
  Request request;
  request.ask = Ask::renew;
  request.milliseconds = static_cast<std::int64_t>(std::ceil(ttl_seconds * 1e3));
  auto asked = (*opened)->ask(request, "session renew", id());
  if (!asked) return fail(asked.error());
  return {};
}

Result<void> Handle::handOut(const std::string& name, double ttl_seconds) {
  auto held = lock();
  if (!held) return fail(held.error());
  metadata_.name = name;
  metadata_.pooled = false;
  metadata_.began = metadata_.expires = Moment::now();
  metadata_.expires.wall_ns += static_cast<std::int64_t>(ttl_seconds * 1e9);
  metadata_.expires.boot_ns += static_cast<std::int64_t>(ttl_seconds * 1e9);
  if (auto noted = note("created", name); !noted) return noted;
  if (auto claimed = store_->claimName(name, id()); !claimed) return claimed;
  if (auto written = replaceMetadata(directory_, metadata_); !written) return written;
  auto connection = connect();
  if (!connection) return fail(connection.error());
  Request request;
  request.ask = Ask::renew;
  request.milliseconds = static_cast<std::int64_t>(std::ceil(ttl_seconds * 1e3));
  auto asked = (*connection)->ask(request, "session create", id());
  if (!asked) return fail(asked.error());
  return {};
}

}  // namespace caisson::session
