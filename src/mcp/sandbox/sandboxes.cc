#include "mcp/sandbox/sandboxes.h"

#include <algorithm>
#include <ctime>

#include "approval/store.h"
#include "base/error.h"
#include "mcp/log.h"
#include "mcp/sandbox/foreign_session.h"
#include "mcp/sandbox/workspace.h"

namespace caisson::mcp {
namespace {

constexpr std::size_t kMaxCommands = 256;  ///< at the same time, in all sandboxes
constexpr std::size_t kIdleHandles = 16;   ///< per sandbox
constexpr std::chrono::seconds kSweepEvery{30};
constexpr std::string_view kHttpNames = "http-";  ///< of sandboxes of the HTTP API (service/sandboxes.cc)
constexpr std::chrono::milliseconds kReviewEvery{250};

/// Ids of the store are lower-case letters, digits and dashes. Others are rejected without a lookup.
bool looksLikeId(const std::string& id) {
  return id.size() >= 8 && id.size() <= 64 && std::all_of(id.begin(), id.end(), [](char letter) {
           return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-';
         });
}

/// An approval for one use is used up before the host is opened. If that fails it was not used.
void giveBackHost(const std::string& host, const std::string& sandbox) {
  auto approvals = approval::Store::open();
  const auto given = approvals
                         ? approvals->giveBack("host:" + host, sandbox, static_cast<std::int64_t>(::time(nullptr)))
                         : std::unexpected(approvals.error());
  if (!given)
    writeLog(LogLevel::warning, "an approval for one use is lost",
             {{"host", host}, {"error", given.error().message()}});
}

}  // namespace

void Sandbox::remember(const std::shared_ptr<Execution>& execution) {
  const std::lock_guard lock(mutex_);
  executions_.push_back(execution);
  for (auto place = executions_.begin(); place != executions_.end() && executions_.size() > kKept;)
    place = (*place)->running() ? place + 1 : executions_.erase(place);
}

std::shared_ptr<Execution> Sandbox::execution(const std::string& exec_id) const {
  const std::lock_guard lock(mutex_);
  for (const auto& execution : executions_)
    if (execution->id() == exec_id) return execution;
  return nullptr;
}

std::vector<std::shared_ptr<Execution>> Sandbox::executions() const {
  const std::lock_guard lock(mutex_);
  return {executions_.begin(), executions_.end()};
}

void Sandbox::forgetHandles() {
  const std::lock_guard lock(mutex_);
  ++handles_since_;
  idle_.clear();
}

void Sandbox::record(const std::vector<Denial>& denials) {
  const std::lock_guard lock(mutex_);
  for (const Denial& denial : denials) denials_.push_back(denial);
  while (denials_.size() > kKept) denials_.pop_front();
}

void Sandboxes::decline(const std::string& id, const std::string& sign) {
  constexpr std::size_t kMaxDeclined = 1000;
  const std::lock_guard lock(mutex_);
  if (declined_.size() < kMaxDeclined) declined_.emplace(id, sign);
}

bool Sandboxes::declined(const std::string& id, const std::string& sign) const {
  const std::lock_guard lock(mutex_);
  return declined_.contains({id, sign});
}

std::vector<Denial> Sandbox::denials() const {
  const std::lock_guard lock(mutex_);
  return {denials_.begin(), denials_.end()};
}

std::optional<unsigned> Sandbox::inputRound(std::uint32_t command) const {
  const std::lock_guard lock(mutex_);
  const auto place = inputs_.find(command);
  return place == inputs_.end() ? 0 : place->second;
}

bool Sandbox::takeInputRound(std::uint32_t command, unsigned round) {
  constexpr std::size_t kMaxInputs = 1024;
  const std::lock_guard lock(mutex_);
  const auto place = inputs_.emplace(command, 0).first;
  if (place->second != round) return false;
  place->second = round + 1;
  if (inputs_.size() > kMaxInputs) inputs_.erase(inputs_.begin());
  return true;
}

void Sandbox::noteInputClosed(std::uint32_t command) {
  const std::lock_guard lock(mutex_);
  inputs_[command] = std::nullopt;
}

Sandboxes::Sandboxes(SandboxSettings settings)
    : settings_(std::move(settings)), sweeper_([this] { look(); }), workers_(kMaxCommands, http::Workers::kNoLimit) {}

Sandboxes::~Sandboxes() {
  finish();
  sweeper_.join();
}

void Sandboxes::look() {
  auto next_sweep = Execution::Clock::now();
  std::unique_lock lock(mutex_);
  while (!finished_) {
    lock.unlock();
    if (Execution::Clock::now() >= next_sweep) {
      sweep();
      next_sweep = Execution::Clock::now() + kSweepEvery;
    }
    reviewApproved();
    lock.lock();
    const auto until = approved_.empty() ? next_sweep : std::min(next_sweep, Execution::Clock::now() + kReviewEvery);
    const bool watching = !approved_.empty();
    ending_.wait_until(lock, until, [&] { return finished_ || watching != !approved_.empty(); });
  }
}

void Sandboxes::sweep() {
  auto opened = store();
  if (!opened) return;
  if (const auto removed = opened->clean(false)) {
    for (const std::string& id : *removed) writeLog(LogLevel::info, "sandbox expired", {{"sandbox_id", id}});
  } else {
    writeLog(LogLevel::warning, "clean-up failed", {{"error", removed.error().message()}});
  }
  const std::vector<SandboxPointer> known = all();  // first: ignore sandboxes that are created meanwhile
  const auto live = opened->list();
  if (!live) return;
  for (const SandboxPointer& sandbox : known) {
    // An expired sandbox whose changes are kept is visible to the user, not to the model.
    const bool there = std::any_of(live->begin(), live->end(), [&](const SessionInfo& info) {
      return info.id == sandbox->id() && info.expires_in > 0;
    });
    if (there) {
      // A model may start any number of commands, and each has a log on disk.
      if (sandbox->own()) (void)with(*sandbox, [](Session& session) { return session.dropEnded(kKeptCommands); });
      continue;
    }
    const std::lock_guard guard(mutex_);
    sandboxes_.erase(sandbox->id());
    approved_.erase(sandbox->id());
  }
}

void Sandboxes::reviewApproved() {
  std::map<std::string, SandboxPointer> approved;
  {
    const std::lock_guard lock(mutex_);
    approved = approved_;
  }
  for (const auto& [id, sandbox] : approved) {
    const auto reviewed = with(*sandbox, [](Session& session) { return session.reviewHosts(); });
    if (reviewed) continue;
    writeLog(LogLevel::warning, "approvals could not be reviewed",
             {{"sandbox_id", id}, {"error", reviewed.error().message()}});
    const std::lock_guard lock(mutex_);
    if (!sandboxes_.contains(id)) approved_.erase(id);  // the sandbox is gone
  }
}

Result<void> Sandboxes::openHost(const SandboxPointer& sandbox, const std::string& host, bool while_approved,
                                 WhenBusy when_busy) {
  const HostTerm term = while_approved ? HostTerm::while_approved : HostTerm::session;
  auto opened = with(*sandbox, [&](Session& session) { return session.openHost(host, term, when_busy); });
  sandbox->forgetHandles();
  if (!opened && !while_approved) giveBackHost(host, sandbox->id());
  if (!opened || !while_approved) return opened;
  const std::lock_guard lock(mutex_);
  approved_[sandbox->id()] = sandbox;
  ending_.notify_all();
  return {};
}

Result<SessionStore> Sandboxes::store() {
  const std::lock_guard lock(mutex_);
  if (!store_) {
    auto opened = SessionStore::open(settings_.program);
    if (!opened) return std::unexpected(opened.error());
    store_ = std::move(*opened);
  }
  return *store_;
}

Result<void> Sandboxes::reserve() {
  const auto taken = [this] {
    const auto own = [](const auto& entry) { return entry.second->own(); };
    return static_cast<std::size_t>(std::ranges::count_if(sandboxes_, own)) + creating_;
  };
  std::unique_lock lock(mutex_);
  if (taken() >= settings_.bounds.max_sandboxes) {
    lock.unlock();
    sweep();  // some may have expired since the last time
    lock.lock();
  }
  if (taken() >= settings_.bounds.max_sandboxes)
    return std::unexpected(Error{.stage = Stage::usage,
                                 .call = "sandbox",
                                 .object = std::to_string(settings_.bounds.max_sandboxes) + " sandboxes",
                                 .reason = "this server has as many as its operator allows (--max-sandboxes)",
                                 .hint = "destroy one with sandbox_destroy"});
  ++creating_;
  return {};
}

Result<SandboxPointer> Sandboxes::create(const std::function<Result<Session>(SessionStore&)>& make, bool stays) {
  if (auto reserved = reserve(); !reserved) {
    recordExcess("sandbox_create", {"", reserved.error().reason, ""}, Json::object());
    return std::unexpected(reserved.error());
  }
  auto opened = store();
  auto session = opened ? make(*opened) : Result<Session>(std::unexpected(opened.error()));
  SandboxPointer sandbox = session ? adopt(session->id(), stays) : nullptr;
  {
    const std::lock_guard lock(mutex_);
    --creating_;
  }
  if (!session) return std::unexpected(session.error());
  give(*sandbox, std::move(*session), 0);
  return sandbox;
}

SandboxPointer Sandboxes::adopt(const std::string& id, bool stays) {
  auto sandbox = std::make_shared<Sandbox>(id, stays);
  {
    const std::lock_guard lock(mutex_);
    sandboxes_[id] = sandbox;
  }
  writeLog(LogLevel::info, "sandbox created", {{"sandbox_id", id}});
  if (announcer_ != nullptr) announcer_->changed(Announcer::Change::resources);
  return sandbox;
}

void Sandboxes::openRoots(const std::vector<std::string>& roots) {
  constexpr std::size_t kMaxRoots = 1000;
  const std::lock_guard lock(mutex_);
  for (const std::string& root : roots)
    if (roots_.size() < kMaxRoots) roots_.insert(root);
}

bool Sandboxes::mayShow(const std::string& id, const std::string& path) {
  const auto opened = [&](const std::string& directory) { return isWithin(path, directory); };
  if (path.empty() || std::ranges::any_of(settings_.bounds.directories, opened)) return true;
  if (settings_.bounds.workspaces) return false;
  {
    const std::lock_guard lock(mutex_);
    if (std::ranges::any_of(roots_, opened)) return true;
  }
  return isApproved(id, "path:" + path);
}

bool Sandboxes::isApproved(const std::string& id, const std::string& what) {
  const auto approvals = approval::Store::open();
  const auto granted =
      approvals ? approvals->list(static_cast<std::int64_t>(::time(nullptr))) : fail(approvals.error());
  return granted && std::ranges::any_of(*granted, [&](const approval::Approval& one) {
           return one.what == what && (one.scope == approval::Scope::timed || one.session == id);
         });
}

std::optional<std::pair<Session, SessionInfo>> Sandboxes::findForeign(const std::string& id) {
  auto opened = looksLikeId(id) ? store() : fail(plainError(Stage::usage, "sandbox", id.substr(0, 80), "not an id"));
  if (!opened) return std::nullopt;
  auto session = opened->find(id);
  if (!session || session->id() != id) return std::nullopt;
  auto info = session->info();
  if (!info || info->name.starts_with(kHttpNames)) return std::nullopt;
  return std::pair(std::move(*session), std::move(*info));
}

bool Sandboxes::mayBeInRoot(const std::string& id) {
  if (!looksLikeId(id) || settings_.bounds.workspaces || settings_.bounds.read_only) return false;
  {
    const std::lock_guard lock(mutex_);
    if (sandboxes_.contains(id)) return false;
  }
  const auto found = findForeign(id);
  return !found || !mayShow(id, found->second.workspace);
}

Error Sandboxes::refuseForeign(const std::string& id, const Excess& excess) {
  recordExcess("sandbox_id", excess, {{"sandbox_id", id}});
  return {.stage = Stage::usage, .call = "sandbox", .object = id, .reason = excess.reason, .hint = excess.remedy};
}

Result<SandboxPointer> Sandboxes::openForeign(const std::string& id) {
  auto found = findForeign(id);
  if (!found) return SandboxPointer();
  auto& [session, info] = *found;
  const auto policy = session.policyJson();
  if (!policy) return std::unexpected(policy.error());
  if (const auto excess = findForeignExcess(settings_.bounds, *policy, info.workspace))
    return std::unexpected(refuseForeign(id, *excess));
  // What commands write in it would last, so a read-only server does not use it.
  if (settings_.bounds.read_only || !mayShow(id, info.workspace)) return SandboxPointer();
  auto needs = findForeignNeeds(settings_.bounds, *policy, id);
  if (!needs) return std::unexpected(refuseForeign(id, needs.error()));
  if (auto approved = checkNeeds(id, *needs); !approved) return std::unexpected(approved.error());
  const std::lock_guard lock(mutex_);
  return sandboxes_.emplace(id, Sandbox::foreign(id, info.workspace, *std::move(needs))).first->second;
}

Result<void> Sandboxes::checkNeeds(const std::string& id, const std::vector<std::string>& needs) {
  constexpr std::string_view kPath = "path:";
  for (const std::string& what : needs)
    if (what.starts_with(kPath) ? !mayShow(id, what.substr(kPath.size())) : !isApproved(id, what))
      return std::unexpected(refuseForeign(id, missingApproval(what, id)));
  return {};
}

Result<SandboxPointer> Sandboxes::find(const std::string& id) {
  SandboxPointer sandbox;
  {
    const std::lock_guard lock(mutex_);
    if (const auto place = sandboxes_.find(id); place != sandboxes_.end()) sandbox = place->second;
  }
  if (sandbox && sandbox->own()) return sandbox;
  if (!sandbox) {
    // Created by another process, or by this server before a restart. We do not own it, so we do not destroy it at the
    // end.
    auto opened = openForeign(id);
    if (!opened || *opened) return opened;
  } else if (mayShow(id, sandbox->workspace_)) {
    // An approval may have been revoked since.
    if (auto approved = checkNeeds(id, sandbox->needs_); !approved) return std::unexpected(approved.error());
    return sandbox;
  }
  std::string known;
  for (const SandboxPointer& one : all())
    if (one->own()) known += (known.empty() ? "" : ", ") + one->id();
  return std::unexpected(Error{.stage = Stage::usage,
                               .call = "sandbox",
                               .object = id.substr(0, 80),
                               .reason = "there is no such sandbox, or its time is over",
                               .hint = known.empty() ? "make one with sandbox_create" : "there are: " + known});
}

std::vector<SandboxPointer> Sandboxes::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<SandboxPointer> list;
  for (const auto& [id, sandbox] : sandboxes_) list.push_back(sandbox);
  return list;
}

Result<void> Sandboxes::destroy(const std::string& id) {
  auto sandbox = find(id);
  if (!sandbox) return std::unexpected(sandbox.error());
  for (const auto& execution : (*sandbox)->executions()) execution->kill();
  auto opened = store();
  if (!opened) return std::unexpected(opened.error());
  auto destroyed = opened->destroy(id);
  if (!destroyed) return destroyed;
  {
    const std::lock_guard lock(mutex_);
    sandboxes_.erase(id);
    approved_.erase(id);
  }
  writeLog(LogLevel::info, "sandbox destroyed", {{"sandbox_id", id}});
  if (announcer_ != nullptr) announcer_->changed(Announcer::Change::resources);
  return {};
}

Result<Session> Sandboxes::take(Sandbox& sandbox, std::uint64_t& since) {
  {
    const std::lock_guard lock(sandbox.mutex_);
    since = sandbox.handles_since_;
    if (!sandbox.idle_.empty()) {
      Session session = std::move(sandbox.idle_.back());
      sandbox.idle_.pop_back();
      return session;
    }
  }
  auto opened = store();
  if (!opened) return std::unexpected(opened.error());
  return opened->find(sandbox.id());
}

void Sandboxes::give(Sandbox& sandbox, Session session, std::uint64_t since) {
  const std::lock_guard lock(sandbox.mutex_);
  if (since == sandbox.handles_since_ && sandbox.idle_.size() < kIdleHandles)
    sandbox.idle_.push_back(std::move(session));
}

std::shared_ptr<Execution> Sandboxes::begin(const SandboxPointer& sandbox, ExecRequest request, std::string command) {
  std::string id;
  {
    const std::lock_guard lock(sandbox->mutex_);
    id = "x" + std::to_string(sandbox->next_execution_++);
  }
  auto execution = std::make_shared<Execution>(std::move(id), std::move(command), outputs_);
  sandbox->remember(execution);
  workers_.runOrCall([this, sandbox, execution, request = std::move(request)] {
    execution->perform(request, [&](const ExecRequest& wanted) {
      return with(*sandbox, [&](Session& session) { return session.exec(wanted); });
    });
    outputs_->noteEnd(execution);
    sandbox->record(execution->denials());
  });
  return execution;
}

void Sandboxes::finish() {
  std::map<std::string, SandboxPointer> sandboxes;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(finished_, true)) return;
    ending_.notify_all();
    sandboxes.swap(sandboxes_);
  }
  for (const auto& [id, sandbox] : sandboxes)
    for (const auto& execution : sandbox->executions()) execution->kill();
  for (const auto& [id, sandbox] : sandboxes) {
    if (sandbox->stays()) continue;
    auto opened = store();
    if (!opened) continue;
    if (auto destroyed = opened->destroy(id); !destroyed)
      writeLog(LogLevel::warning, "sandbox could not be removed",
               {{"sandbox_id", id}, {"error", destroyed.error().message()}});
  }
}

}  // namespace caisson::mcp
