#include "session/client/session_context.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "approval/owner.h"
#include "base/version.h"
#include "policy/decode/validate.h"
#include "policy/limits.h"
#include "session/client/foreground.h"
#include "session/client/worker.h"
#include "session/commit/recover.h"
#include "session/store/rollback.h"
#include "session/store/ttl.h"
#include "session/store/workspace_root.h"
#include "session/tier/tier_command.h"
#include "session/tier/tier_files.h"

namespace caisson::session {
namespace {

constexpr int kClientLockTries = 25;
constexpr auto kClientLockPause = std::chrono::milliseconds(10);
constexpr int kAttempts = 3;

std::string restartNotice(std::string_view reason) {
  return "the session's sandbox was restarted: " + std::string(reason) +
         (reason == kEndedByEscape ? "; the workspace was rolled back; temporary directories (/tmp, the home), content "
                                     "of caches and processes "
                                     "are gone"
                                   : "; files of the workspace and directories on disk are kept, directories in memory "
                                     "and processes are gone");
}

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
  return {};
}

/// Checks a timeout for one command against the current ceilings. The rest of the policy was checked when the session
/// was created.
Result<void> checkTimeout(const policy::Policy& policy, double seconds) {
  const auto owner = approval::loadOwner();
  if (!owner) return fail(owner.error());
  const policy::Field* field = policy::findField("resources.wall_seconds");
  if (const auto problem = policy::checkField(*field, seconds, policy, owner->ceilingsFor(policy)))
    return fail(policy::errorOf(*problem));
  return {};
}

Error expired(const std::string& id) {
  return plainError(Stage::state, "session", id, "the session has expired",
                    "`caisson session renew " + id + " 1h` brings it back with its uncommitted changes");
}

}  // namespace

Result<sys::Fd> SessionContext::lock() {
  auto lock = lockFileWithin(directory_, kLockFile, store_->lockTimeout());
  if (!isCurrent(store_->paths(), id(), directory_)) {
    return fail(plainError(Stage::state, "session", id(), "the session was destroyed",
                           "`caisson session list` shows the sessions of this user"));
  }
  if (!lock) return lock;
  auto metadata = store_->readMetadata(directory_);
  if (!metadata) return fail(metadata.error());
  metadata_ = std::move(*metadata);
  if (auto rolled_back = carryOutRollback(directory_, metadata_); !rolled_back) return fail(rolled_back.error());
  if (addMissingIdentity(metadata_)) (void)writeMetadata(directory_, metadata_);
  (void)finishInterruptedCommit();  // a failure only blocks the next commit
  (void)extendByActivity(directory_, metadata_);
  forgetKept(directory_);
  return lock;
}

Result<void> SessionContext::reload() {
  auto opened = SupervisorConnection::open(directory_);
  if (!opened) return fail(opened.error());
  if (!*opened) return {};
  auto answer = (*opened)->ask(MessageType::reload, {}, "session", id());
  if (!answer) return fail(answer.error());
  return {};
}

Result<void> SessionContext::checkProtocol() const {
  if (!isAlive(directory_)) return {};
  const auto opened = SupervisorConnection::open(directory_);
  // Other errors, such as a supervisor that does not answer, are reported once the new rules are written.
  return opened || !isOtherVersion(opened.error()) ? Result<void>() : fail(opened.error());
}

Result<std::optional<SupervisorConnection>> SessionContext::startSandbox() {
  auto held = lock();
  if (!held) return fail(held.error());
  if (metadata_.secondsLeft(Moment::now()) <= 0) {
    return fail(expired(id()));
  }
  auto opened = SupervisorConnection::open(directory_);  // another process may have started it while we waited
  if (!opened) return opened;
  if (metadata_.creator && !metadata_.creator->isAlive()) {
    metadata_.creator = ProcessId::of(::getpid());  // take over the session of a dead process
    if (auto written = writeMetadata(directory_, metadata_); !written) return fail(written.error());
  }
  if (!*opened) {
    if (readInitRecord(directory_)) {
      restart_notice_ = restartNotice("its supervisor was killed");
      if (auto noted = note("supervisor lost"); !noted) return fail(noted.error());
    }
    if (auto killed = killSandbox(directory_); !killed) return fail(killed.error());  // left by a killed supervisor
    if (auto started = startSupervisor(store_->paths(), id()); !started) return fail(started.error());
    opened = SupervisorConnection::open(directory_);
    if (!opened) return opened;
    if (!*opened) return fail(goneError("connect", id()));
  }
  if ((*opened)->welcome().sandbox_runs) return opened;
  if (const auto reason = directory_.readFile(kEndReasonFile, 4096)) {
    restart_notice_ = restartNotice(*reason);
    (void)directory_.remove(kEndReasonFile);
  }
  StartOptions options;
  for (const policy::Credential& one : metadata_.policy.network.credentials) {
    if (one.secret_env.empty()) continue;
    if (const char* value = std::getenv(one.secret_env.c_str())) options.secrets.emplace(one.secret_env, value);
  }
  auto started = (*opened)->startSandbox(options, id());
  if (!started && started.error().sys_errno == ENOSPC) {
    store_->emptyTrash();  // layers that no session uses
    started = (*opened)->startSandbox(options, id());
  }
  if (!started) return fail(started.error());
  return opened;
}

Result<const SupervisorConnection*> SessionContext::connect() {
  if (inLandlockTier(metadata_.policy)) {
    return fail(notInTier("session", metadata_, "it needs a sandbox that is kept between commands",
                          "use tier `namespaces`, or run single commands"));
  }
  if (connection_ && !connection_->isClosed()) return &*connection_;
  disconnect();
  auto opened = SupervisorConnection::open(directory_);
  if (!opened) return fail(opened.error());
  if (!*opened || !(*opened)->welcome().sandbox_runs) opened = startSandbox();
  if (!opened) return fail(opened.error());
  connection_ = std::move(**opened);
  return &*connection_;
}

Result<void> checkExec(const ExecRequest& request, const policy::Policy& policy) {
  if (auto checked = checkRequest(request); !checked) return checked;
  if (!request.timeout_seconds || request.typed) return {};
  return checkTimeout(policy, *request.timeout_seconds);
}

Result<RunResult> SessionContext::exec(const ExecRequest& request) {
  if (auto checked = checkExec(request, metadata_.policy); !checked) return fail(checked.error());
  if (auto reviewed = reviewHosts(); !reviewed) return fail(reviewed.error());
  if (isCommitPending(directory_)) {
    // The supervisor, too, has the lock for a moment. Whoever has it for longer is committing.
    auto free = lockFile(directory_, kLockFile, false);
    for (int tries = 1; !free && tries < kClientLockTries; ++tries) {
      std::this_thread::sleep_for(kClientLockPause);
      free = lockFile(directory_, kLockFile, false);
    }
    if (free) {
      free->reset();
      if (auto held = lock(); !held) return fail(held.error());
    }
  }
  if (inLandlockTier(metadata_.policy)) return execInTier(request);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto connection = connect();
    if (!connection) return fail(connection.error());
    const auto prompt = promptForHosts(request);
    auto ran =
        runForeground(**connection, request,
                      {.session_id = id(), .notice = std::exchange(restart_notice_, {}), .prompt = prompt.get()});
    if (!ran) return fail(ran.error());
    if (*ran) return std::move(**ran);
    disconnect();  // ended by a checkpoint, a restore or its expiry: start it again
  }
  return fail(goneError("session exec", id()));
}

Result<RunResult> SessionContext::execInTier(const ExecRequest& request) {
  auto held = lock();
  if (!held) return fail(held.error());
  if (metadata_.secondsLeft(Moment::now()) <= 0) return fail(expired(id()));
  auto in_use = useTierSession(directory_);
  if (!in_use) return fail(in_use.error());
  held->reset();
  return runInTier(store_->paths(), metadata_, request);
}

Result<RunResult> SessionContext::execOnce(const std::shared_ptr<Store>& store, std::string_view id_or_name,
                                           const ExecRequest& request) {
  const auto id = store->idOf("session exec", id_or_name);
  auto directory = id ? store->paths().sessions().enter(*id) : fail(id.error());
  auto opened = directory && isId(id_or_name) ? SupervisorConnection::open(*directory)
                                              : Result<std::optional<SupervisorConnection>>(std::nullopt);
  // The usual case needs no policy here: the supervisor has it.
  const bool simple = opened && *opened && !isCommitPending(*directory) && (*opened)->welcome().sandbox_runs &&
                      !(*opened)->welcome().review_first && !request.interactive && !request.timeout_seconds;
  if (simple) {
    if (auto checked = checkRequest(request); !checked) return fail(checked.error());
    auto ran = runForeground(**opened, request, {.session_id = *id});
    if (!ran) return fail(ran.error());
    if (*ran) return std::move(**ran);
  }
  auto found = store->find("session exec", id_or_name);
  if (!found) return fail(found.error());
  return SessionContext(store, std::move(*found)).exec(request);
}

Result<void> SessionContext::renew(double ttl_seconds) {
  if (auto checked = checkTtl("session renew", id(), ttl_seconds); !checked) return checked;
  auto held = lock();
  if (!held) return fail(held.error());
  auto opened = SupervisorConnection::open(directory_);
  if (!opened && isOtherVersion(opened.error())) return fail(opened.error());  // before anything is written
  metadata_.setTtl(Moment::now(), ttl_seconds);
  if (auto written = writeMetadata(directory_, metadata_); !written) return written;
  if (!opened) return fail(opened.error());
  if (!*opened) return {};
  auto asked = (*opened)->ask(MessageType::renew, codec::encode(Seconds{ttl_seconds}), "session renew", id());
  if (!asked) return fail(asked.error());
  return {};
}

Result<sys::Fd> SessionContext::handOut(const std::string& name, double ttl_seconds) {
  auto held = lock();
  if (!held) return fail(held.error());
  const bool claimed_before = metadata_.name == name;
  metadata_.name = name;
  metadata_.pooled = false;
  metadata_.pooled_by.reset();
  // Commands may start at once: what the host changes in this tick is perhaps not seen by them.
  metadata_.began = Moment::beforeThisTick();
  metadata_.setTtl(metadata_.began, ttl_seconds);
  if (auto noted = note("created", name); !noted) return fail(noted.error());
  if (!claimed_before) {
    if (auto claimed = store_->claimName(name, id()); !claimed) return fail(claimed.error());
  }
  auto replaced = store_->exchangeMetadata(directory_, metadata_);
  if (!replaced || inLandlockTier(metadata_.policy)) return replaced;
  auto connection = connect();
  if (!connection) return fail(connection.error());
  auto asked = (*connection)->ask(MessageType::renew, codec::encode(Seconds{ttl_seconds}), "session create", id());
  if (!asked) return fail(asked.error());
  return replaced;
}

}  // namespace caisson::session
