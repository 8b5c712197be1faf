// The public Session and SessionStore.
#include "caisson/session.h"

#include <algorithm>

#include "plan/optional_layers.h"
#include "policy/describe/json.h"
#include "session/client/session_context.h"
#include "session/commit/directory_baseline.h"
#include "session/commit/git_base.h"
#include "session/commit/kept_commits.h"
#include "session/commit/uncommit.h"
#include "session/store/pool.h"
#include "session/store/session_info.h"
#include "session/tier/tier_files.h"

namespace caisson {

using session::SessionContext;
using session::Store;

namespace {

std::string modeText(std::uint32_t before, std::uint32_t now) {
  const auto octal = [](std::uint32_t mode) {
    std::string text = "0";
    for (const unsigned shift : {6U, 3U, 0U}) text += static_cast<char>('0' + (mode >> shift & 7U));
    return text;
  };
  return before == now ? "" : "mode " + octal(before) + " -> " + octal(now);
}

}  // namespace

std::string modeChange(const Change& change) { return modeText(change.old_mode, change.new_mode); }

std::string modeChange(const FileDiff& diff) {
  const bool stays = diff.type == diff.old_type && (diff.type == "regular file" || diff.type == "directory");
  return stays ? modeText(diff.old_mode, diff.mode) : "";
}

std::string_view name(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::added: return "added";
    case ChangeKind::modified: return "modified";
    case ChangeKind::deleted: return "deleted";
  }
  return "unknown";
}

Session::Session(std::shared_ptr<SessionContext> handle) : context_(std::move(handle)) {}

const std::string& Session::id() const { return context_->id(); }

Result<SessionInfo> Session::info() const {
  auto found = context_->store().find("session", id());
  if (!found) return fail(found.error());
  return session::infoOf(context_->store().paths(), found->directory, found->metadata);
}

Result<std::string> Session::policyJson() const {
  auto found = context_->store().find("session", id());
  if (!found) return fail(found.error());
  return policy::toJson(found->metadata.policy);
}

Result<RunResult> Session::exec(const ExecRequest& request) { return context_->exec(request); }

Result<std::uint32_t> Session::start(const ExecRequest& request) { return context_->start(request); }

Result<std::vector<ExecInfo>> Session::processes() { return context_->processes(); }

Result<ExecInfo> Session::status(std::uint32_t exec) { return context_->status(exec); }

Result<ExecInfo> Session::wait(std::uint32_t exec, double timeout_seconds) {
  return context_->wait(exec, timeout_seconds);
}

Result<LogPiece> Session::logs(std::uint32_t exec, OutputStreamKind stream, std::uint64_t offset,
                               std::size_t max_bytes) {
  return context_->logs(exec, stream, offset, max_bytes);
}

Result<void> Session::useLogs(const std::function<void(int)>& use) { return context_->useLogs(use); }

Result<void> Session::feed(std::uint32_t exec, std::string_view data, bool close) {
  return context_->feed(exec, data, close);
}

Result<void> Session::stop(std::uint32_t exec, double grace_seconds) { return context_->stop(exec, grace_seconds); }

Result<void> Session::dropEnded(std::size_t keep) { return context_->dropEnded(keep); }

Result<void> Session::signal(std::uint32_t exec, int number) { return context_->signal(exec, number); }

Result<std::vector<LeftBehind>> Session::leftBehind() { return context_->leftBehind(); }

Result<std::vector<LeftBehind>> Session::stopLeftBehind(double grace_seconds) {
  return context_->stopLeftBehind(grace_seconds);
}

Result<FilePiece> Session::read(std::string_view path, std::uint64_t offset, std::uint64_t max_bytes, FileReach reach) {
  return context_->read(path, offset, max_bytes, reach);
}

Result<void> Session::write(std::string_view path, std::string_view data, const WriteOptions& options) {
  return context_->write(path, data, options);
}

Result<std::uint64_t> Session::writeFrom(std::string_view path,
                                         const std::function<Result<std::size_t>(std::span<char>)>& read,
                                         const WriteOptions& options) {
  return context_->writeFrom(path, read, options);
}

Result<int> Session::openFile(std::string_view path, FileReach reach) { return context_->openFile(path, reach); }

Result<std::vector<FileEntry>> Session::listFiles(std::string_view path, const std::function<void(int)>& opened,
                                                  FileReach reach) {
  return context_->listFiles(path, opened, reach);
}

Result<FileEntry> Session::statFile(std::string_view path, FileReach reach) { return context_->statFile(path, reach); }

Result<PathAccess> Session::pathAccess(std::string_view path) { return context_->pathAccess(path); }

Result<void> Session::makeDirectory(std::string_view path) { return context_->makeDirectory(path); }

Result<void> Session::moveFile(std::string_view from, std::string_view to, bool replace) {
  return context_->moveFile(from, to, replace);
}

Result<void> Session::removeFile(std::string_view path, bool recursive) {
  return context_->removeFile(path, recursive);
}

Result<CheckpointInfo> Session::checkpoint(std::string_view name, WhenBusy when_busy) {
  return context_->checkpoint(name, when_busy);
}

Result<std::vector<CheckpointInfo>> Session::checkpoints() { return context_->checkpoints(); }

Result<void> Session::restore(std::string_view checkpoint, WhenBusy when_busy) {
  return context_->restore(checkpoint, when_busy);
}

Result<Session> Session::fork(const ForkOptions& options) {
  auto made = context_->fork(options);
  if (!made) return fail(made.error());
  return Session(std::make_shared<SessionContext>(context_->sharedStore(), std::move(*made)));
}

Result<std::vector<Change>> Session::diff(std::string_view checkpoint) { return context_->diff(checkpoint); }

Result<void> Session::diffFiles(const DiffOptions& options, const std::function<bool(const FileDiff&)>& visit) {
  return context_->diffFiles(options, visit);
}

Result<ExportReport> Session::exportTar(std::string_view checkpoint,
                                        const std::function<bool(std::string_view)>& write) {
  return context_->exportTar(checkpoint, write);
}

Result<CopyReport> Session::copyIn(const std::string& from, std::string_view to) { return context_->copyIn(from, to); }

Result<CopyReport> Session::copyOut(std::string_view from, const std::string& to) {
  return context_->copyOut(from, to);
}

Result<bool> Session::hasUncommittedChanges() const {
  auto found = context_->store().find("session", id());
  if (!found) return fail(found.error());
  return context_->store().hasUncommittedChanges(found->metadata);
}

Result<CommitReport> Session::commit(const CommitRequest& request) { return context_->commit(request); }

Result<void> Session::network(bool allow, std::string_view pattern) { return context_->changeNetwork(allow, pattern); }

Result<void> Session::openHost(std::string_view pattern, HostTerm term, WhenBusy when_busy) {
  return context_->openHost(pattern, term, when_busy);
}

Result<void> Session::closeHost(std::string_view pattern) { return context_->closeHost(pattern); }

Result<void> Session::reviewHosts() { return context_->reviewHosts(); }

Result<OpenPort> Session::openPort(std::uint16_t port, std::uint16_t host_port, bool inward) {
  return context_->openPort(port, host_port, inward);
}

Result<std::vector<OpenPort>> Session::openPorts() { return context_->openPorts(); }

Result<void> Session::closePort(std::uint16_t port, bool inward) { return context_->closePort(port, inward); }

Result<void> Session::rebind(const std::string& directory, WhenBusy when_busy) {
  return context_->rebind(directory, when_busy);
}

Result<void> Session::renew(double ttl_seconds) { return context_->renew(ttl_seconds); }

Result<void> Session::destroy() {
  context_->disconnect();
  auto destroyed = context_->store().destroy(id());
  if (destroyed) (void)context_->note("destroyed");  // even without the log: destroying must always be possible
  return destroyed;
}

SessionStore::SessionStore(std::shared_ptr<Store> store) : store_(std::move(store)) {}

Result<SessionStore> SessionStore::open(std::string program) {
  auto paths = session::SessionPaths::open(std::move(program));
  if (!paths) return fail(paths.error());
  return SessionStore(std::make_shared<Store>(std::move(*paths)));
}

Result<Session> SessionStore::create(const SessionOptions& options) {
  store_->cleanSometimes();
  auto made = store_->make(options);
  if (!made) return fail(made.error());
  auto handle = std::make_shared<SessionContext>(store_, std::move(*made));
  if (auto noted = handle->note("created", options.name); !noted) {
    (void)store_->destroy(handle->id());
    return fail(noted.error());
  }
  const bool tier = session::inLandlockTier(options.policy.model());
  if (auto connected = tier ? Result<const session::SupervisorConnection*>(nullptr) : handle->connect(); !connected) {
    const Error error = connected.error();
    (void)store_->destroy(handle->id());
    if (error.code == ErrorCode::no_user_namespace &&
        plan::mayMiss(options.policy.model(), policy::OptionalLayer::landlock)) {
      SessionOptions weaker = options;
      weaker.policy.model().isolation.tier = policy::Tier::landlock;
      return create(weaker);
    }
    return fail(error);
  }
  session::recordGitBases(handle->directory(), handle->metadata());
  session::recordDirectories(handle->directory(), handle->metadata());
  session::waitForTickAfter(handle->metadata().began);  // before a command reads what the host may change
  if (!options.wait_for_disk) store_->makeDurableLater(handle->id(), handle->metadata().name);
  return Session(std::move(handle));
}

Result<SessionPool> SessionStore::pool(const SessionOptions& options, std::size_t size) {
  return pool(options, PoolOptions{.size = size});
}

Result<SessionPool> SessionStore::pool(const SessionOptions& options, PoolOptions pool_options) {
  auto made = session::Pool::start(store_, options, std::move(pool_options));
  if (!made) return fail(made.error());
  return SessionPool(std::move(*made));
}

SessionPool::SessionPool(std::unique_ptr<session::Pool> pool) : pool_(std::move(pool)) {}
SessionPool::SessionPool(SessionPool&&) noexcept = default;
SessionPool& SessionPool::operator=(SessionPool&&) noexcept = default;
SessionPool::~SessionPool() = default;

Result<Session> SessionPool::take(const std::string& name, double ttl_seconds, const BeforeHandOut& before) {
  auto taken = pool_->take(name, ttl_seconds, before);
  if (!taken) return fail(taken.error());
  return Session(std::move(*taken));
}

std::size_t SessionPool::ready() const { return pool_->ready(); }

Result<Session> SessionStore::find(std::string_view id_or_name) const {
  auto found = store_->find("session", id_or_name);
  if (!found) return fail(found.error());
  return Session(std::make_shared<SessionContext>(store_, std::move(*found)));
}

Result<RunResult> SessionStore::exec(std::string_view id_or_name, const ExecRequest& request) {
  return SessionContext::execOnce(store_, id_or_name, request);
}

Result<std::vector<SessionInfo>> SessionStore::list() {
  if (auto cleaned = store_->clean(false); !cleaned) return fail(cleaned.error());
  return store_->list();
}

Result<void> SessionStore::destroy(std::string_view id_or_name) {
  auto id = store_->idOf("session destroy", id_or_name);
  if (!id) return fail(id.error());
  auto destroyed = store_->destroy(*id);
  if (destroyed) (void)session::Record().lifecycle(*id, policy::Policy{}, "destroyed");
  return destroyed;
}

Result<std::vector<ReplacedByCommit>> SessionStore::replaced(std::string_view id_or_name) const {
  const auto id = store_->idOf("session info", id_or_name);
  if (!id) return fail(id.error());
  return session::listKept(store_->paths(), *id);
}

KeptData SessionStore::keptData() const { return session::keptData(store_->paths()); }

Result<CommitReport> SessionStore::uncommit(std::string_view id_or_name, bool dry_run) {
  const auto id = store_->idOf("session uncommit", id_or_name);
  if (!id) return fail(id.error());
  auto found = store_->find("session uncommit", *id);
  if (!found) return session::uncommit(store_->paths(), *id, dry_run);  // the session is gone
  return SessionContext(store_, std::move(*found)).uncommit(dry_run);
}

Result<std::vector<std::string>> SessionStore::clean(bool all) { return store_->clean(all); }

void SessionStore::onNotice(std::function<void(const std::string&)> handler) { store_->onNotice(std::move(handler)); }

}  // namespace caisson
