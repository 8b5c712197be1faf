#include "service/sandboxes.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "service/tokens.h"
#include "session/store/background_files.h"
#include "session/store/store.h"
#include "sys/state_home.h"

namespace caisson::service {
namespace {

constexpr std::size_t kIdleHandles = 16;  ///< per sandbox
constexpr std::chrono::seconds kSweepEvery{15};
constexpr std::string_view kKeyPrefix = "http-";

Error overQuota(std::string_view what, std::string reason) {
  return Error{.stage = Stage::limits,
               .call = "quota",
               .object = std::string(what),
               .sys_errno = EUSERS,
               .reason = std::move(reason),
               .hint = "destroy a sandbox, ask for less, or ask the owner for a larger quota"};
}

constexpr std::int64_t kRecordFormat = 1;
constexpr std::uint64_t kMaxRecord = std::uint64_t{1} << 20U;

std::string recordText(const SandboxRecord& record) {
  return writeJson({{"format_version", kRecordFormat},
                    {"key", record.key},
                    {"owner", record.owner},
                    {"owner_name", record.owner_name},
                    {"name", record.name},
                    {"labels", record.labels},
                    {"profile", record.profile},
                    {"template", record.template_name},
                    {"cpus", record.cpus},
                    {"memory", record.memory},
                    {"disk", record.disk},
                    {"command_timeout", record.command_timeout},
                    {"created", record.created}});
}

/// Whether SessionStore reports that there is no such session, or that its time is over. Other errors are the
/// machine's.
bool isGone(const Error& error) { return error.stage == Stage::usage || error.sys_errno == ENOENT; }

/// The machine's fault: without its errno, EACCES would look like a missing right of the caller.
Error notDestroyed(const std::string& id, std::string_view what, const Error& cause) {
  const bool full = cause.sys_errno == ENOSPC || cause.sys_errno == EDQUOT;
  const std::string message = cause.message();
  return Error{.stage = Stage::state,
               .call = "destroy",
               .object = id,
               .sys_errno = full ? cause.sys_errno : 0,
               .reason = std::string(what) + ": " + message.substr(0, message.find('\n')),
               .hint = cause.hint};
}

double realAt(const Json& object, std::string_view key) {
  const Json* member = find(object, key);
  return member != nullptr && member->is_number() ? member->get<double>() : 0;
}

}  // namespace

bool isSandboxId(std::string_view text) { return session::isId(text); }

Error noSandbox(std::string_view id) {
  return Error{.stage = Stage::usage,
               .call = "sandbox",
               .object = std::string(id.substr(0, 80)),
               .sys_errno = ENOENT,
               .reason = "there is no such sandbox, or it has expired",
               .hint = "list yours with GET /v1/sandboxes"};
}

void Sandbox::forgetHandles() {
  const std::lock_guard lock(mutex_);
  ++generation_;
  idle_.clear();
}

std::string Sandboxes::newKey() { return std::string(kKeyPrefix) + randomName(24); }

Result<std::unique_ptr<Sandboxes>> Sandboxes::open(std::string program, Events& events) {
  // A thread must not wait for a session for as long as another request likes; its client can try again.
  constexpr std::chrono::seconds kLockTimeout{10};
  auto paths = session::SessionPaths::open(std::move(program));
  if (!paths) return std::unexpected(paths.error());
  SessionStore store(std::make_shared<session::Store>(*std::move(paths), kLockTimeout));
  auto directory = sys::openStateDirectory("server/sandboxes");
  if (!directory) return std::unexpected(directory.error());
  auto records = sys::RootDir::adopt(std::move(*directory), {});
  if (!records) return std::unexpected(records.error());
  return std::unique_ptr<Sandboxes>(new Sandboxes(std::move(store), *std::move(records), events));
}

Sandboxes::Sandboxes(SessionStore store, sys::RootDir records, Events& events)
    : store_(std::make_unique<SessionStore>(std::move(store))), records_(std::move(records)), events_(events) {
  if (const auto sessions = store_->list()) {
    for (const SessionInfo& info : *sessions) remember(info.id, recordOf(info));
  }
  sweeper_ = std::thread([this] { sweep(); });
}

Sandboxes::~Sandboxes() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ending_.notify_all();
  sweeper_.join();
}

Result<void> Sandboxes::writeRecord(const SandboxRecord& record) const {
  // Not synced: it survives the death of the server. After a power loss without it the sandbox is the owner's alone.
  const std::string text = recordText(record) + "\n";
  if (text.size() > kMaxRecord)  // after a restart it could not be read, and the sandbox would be the owner's
    return std::unexpected(Error{.stage = Stage::usage,
                                 .call = "sandbox",
                                 .object = record.name.substr(0, 80),
                                 .sys_errno = EINVAL,
                                 .reason = "name, labels and the name of the policy are too long together",
                                 .hint = "use shorter ones"});
  return records_.replaceFile(record.key + ".json", text, 0600);
}

std::optional<SandboxRecord> Sandboxes::readRecord(const std::string& key) const {
  if (!key.starts_with(kKeyPrefix)) return std::nullopt;
  const auto text = records_.readFile(key + ".json", kMaxRecord);
  if (!text) return std::nullopt;
  const auto value = parseJson(*text);
  // Without a record it understands, the server gives the sandbox to its owner alone.
  if (!value || integerAt(*value, "format_version").value_or(kRecordFormat) != kRecordFormat) return std::nullopt;
  SandboxRecord record{.key = key};
  record.owner = textAt(*value, "owner").value_or(std::string(kOwnerId));
  record.owner_name = textAt(*value, "owner_name").value_or("");
  record.name = textAt(*value, "name").value_or("");
  record.profile = textAt(*value, "profile").value_or("");
  record.template_name = textAt(*value, "template").value_or("");
  record.cpus = realAt(*value, "cpus");
  record.memory = static_cast<std::uint64_t>(integerAt(*value, "memory").value_or(0));
  record.disk = static_cast<std::uint64_t>(integerAt(*value, "disk").value_or(0));
  record.command_timeout = realAt(*value, "command_timeout");
  record.created = integerAt(*value, "created").value_or(0);
  if (const Json* labels = findObject(*value, "labels")) {
    for (const auto& [name, text_value] : labels->items())
      if (text_value.is_string()) record.labels[name] = text_value.get<std::string>();
  }
  return record;
}

SandboxRecord Sandboxes::recordOf(const SessionInfo& info) const {
  if (auto record = readRecord(info.name)) return *std::move(record);
  return {.key = info.name, .owner = std::string(kOwnerId), .name = info.name, .created = info.created};
}

SandboxPointer Sandboxes::remember(const std::string& id, SandboxRecord record) {
  const std::lock_guard lock(mutex_);
  creating_.erase(record.key);
  auto& place = known_[id];
  if (!place) place = std::make_shared<Sandbox>(id, std::move(record));
  return place;
}

Result<void> Sandboxes::checkQuotas(const Principal& caller, const SandboxRecord& record) const {
  std::uint64_t count = 1, memory = record.memory, disk = record.disk;
  double cpus = record.cpus;
  const auto add = [&](const SandboxRecord& other) {
    if (other.owner != caller.id) return;
    ++count;
    memory += other.memory;
    disk += other.disk;
    cpus += other.cpus;
  };
  for (const auto& [id, sandbox] : known_) add(sandbox->record());
  for (const auto& [key, other] : creating_) add(other);
  const Quotas& quotas = caller.quotas;
  if (quotas.sandboxes && count > *quotas.sandboxes)
    return std::unexpected(
        overQuota("sandboxes", "the token may have " + std::to_string(*quotas.sandboxes) + " at a time"));
  if (quotas.memory && memory > *quotas.memory)
    return std::unexpected(overQuota(
        "memory", "all sandboxes of the token together may have " + std::to_string(*quotas.memory) + " bytes"));
  if (quotas.disk && disk > *quotas.disk)
    return std::unexpected(
        overQuota("disk", "all sandboxes of the token together may have " + std::to_string(*quotas.disk) + " bytes"));
  if (quotas.cpus && cpus > *quotas.cpus)
    return std::unexpected(overQuota("cpus", "all sandboxes of the token together may have fewer CPUs"));
  return {};
}

Result<void> Sandboxes::claimQuota(const Principal& caller, const SandboxRecord& record) {
  const std::lock_guard lock(mutex_);
  if (auto checked = checkQuotas(caller, record); !checked) return checked;
  creating_[record.key] = record;
  return {};
}

Result<void> Sandboxes::reserve(const Principal& caller, const SandboxRecord& record) {
  if (auto claimed = claimQuota(caller, record); !claimed) return claimed;
  auto written = writeRecord(record);
  if (!written) abandon(record.key);
  return written;
}

void Sandboxes::abandon(const std::string& key) {
  const std::lock_guard lock(mutex_);
  creating_.erase(key);
  (void)records_.remove(key + ".json");
}

Result<SandboxPointer> Sandboxes::create(const Principal& caller, SandboxRecord record, SessionOptions options,
                                         SessionPool* pool) {
  record.owner = caller.id;
  record.owner_name = caller.name;
  record.created = std::time(nullptr);
  const std::string chosen_key = record.key;
  if (record.key.empty()) record.key = newKey();
  // First of all: a caller without quota must not use up the pool.
  if (auto claimed = claimQuota(caller, record); !claimed) return std::unexpected(claimed.error());
  // A session from the pool has its name already.
  const auto writeRecordAs = [&](const std::string& key) {
    {
      const std::lock_guard lock(mutex_);
      creating_.erase(record.key);
      record.key = key;
      creating_[key] = record;
    }
    return writeRecord(record);
  };
  const auto createNow = [&]() -> Result<Session> {
    if (auto written = writeRecord(record); !written) return std::unexpected(written.error());
    options.name = record.key;
    options.keep = true;
    options.wait_for_disk = false;
    return store_->create(options);
  };
  auto session = pool != nullptr ? pool->take(chosen_key, options.ttl_seconds, writeRecordAs) : createNow();
  if (!session) {
    abandon(record.key);
    return std::unexpected(session.error());
  }
  auto sandbox = remember(session->id(), std::move(record));
  give(*sandbox, std::move(*session), 0);
  events_.publish("sandbox.created", sandbox->id(), caller.id, {{"name", sandbox->record().name}});
  return sandbox;
}

Result<SandboxPointer> Sandboxes::fork(const Principal& caller, Sandbox& from, ForkOptions options,
                                       const std::string& name, const std::string& key) {
  SandboxRecord record = from.record();
  record.key = key.empty() ? newKey() : key;
  record.name = name;
  record.created = std::time(nullptr);
  const Principal owner = record.owner == caller.id ? caller : Principal{.id = record.owner, .owner = true};
  if (auto reserved = reserve(owner, record); !reserved) return std::unexpected(reserved.error());
  options.name = record.key;
  auto id = with(from, [&](Session& session) -> Result<std::string> {
    auto forked = session.fork(options);
    if (!forked) return std::unexpected(forked.error());
    return forked->id();
  });
  from.forgetHandles();
  if (!id) {
    abandon(record.key);
    return std::unexpected(id.error());
  }
  auto sandbox = remember(*id, std::move(record));
  events_.publish("sandbox.created", *id, sandbox->record().owner, {{"forked_from", from.id()}});
  return sandbox;
}

Result<SandboxPointer> Sandboxes::find(const Principal& caller, const std::string& id) {
  SandboxPointer sandbox;
  {
    const std::lock_guard lock(mutex_);
    if (const auto place = known_.find(id); place != known_.end()) sandbox = place->second;
  }
  // The store also accepts the beginning of an id, and its response time would reveal a match.
  if (!sandbox && isSandboxId(id)) {
    auto session = store_->find(id);
    if (session && session->id() == id) {
      const auto info = session->info();
      if (info) sandbox = remember(id, recordOf(*info));
    } else if (!session && caller.owner && !isGone(session.error())) {
      return std::unexpected(session.error());
    }
  }
  if (!sandbox || !caller.sees(sandbox->record().owner)) return std::unexpected(noSandbox(id));
  return sandbox;
}

SandboxPointer Sandboxes::findKey(const std::string& key) {
  auto session = store_->find(key);
  if (!session) return nullptr;
  const auto info = session->info();
  if (!info || info->name != key) return nullptr;
  return remember(info->id, recordOf(*info));
}

Result<std::vector<std::pair<SandboxPointer, SessionInfo>>> Sandboxes::list(const Principal& caller) {
  const auto sessions = store_->list();
  if (!sessions) return std::unexpected(sessions.error());
  std::vector<std::pair<SandboxPointer, SessionInfo>> found;
  for (const SessionInfo& info : *sessions) {
    SandboxPointer sandbox;
    {
      const std::lock_guard lock(mutex_);
      if (const auto place = known_.find(info.id); place != known_.end()) sandbox = place->second;
    }
    if (!sandbox) sandbox = remember(info.id, recordOf(info));
    if (caller.sees(sandbox->record().owner)) found.emplace_back(std::move(sandbox), info);
  }
  return found;
}

Result<void> Sandboxes::destroy(const Principal& caller, const std::string& id) {
  auto sandbox = find(caller, id);
  if (!sandbox) return std::unexpected(sandbox.error());
  (*sandbox)->forgetHandles();
  auto destroyed = store_->destroy(id);
  const bool gone = !destroyed && isGone(destroyed.error());
  if (!destroyed && !gone && exists(**sandbox))
    return std::unexpected(notDestroyed(id, "the sandbox could not be destroyed", destroyed.error()));
  {
    const std::lock_guard lock(mutex_);
    known_.erase(id);
  }
  const SandboxRecord& record = (*sandbox)->record();
  if (record.key.starts_with(kKeyPrefix)) (void)records_.remove(record.key + ".json");
  events_.publish("sandbox.ended", id, record.owner, {{"reason", gone ? "expired" : "destroyed"}});
  if (gone) return std::unexpected(noSandbox(id));
  if (!destroyed)  // the sweeper tries again
    return std::unexpected(
        notDestroyed(id, "the sandbox has ended, but its files could not be removed", destroyed.error()));
  return {};
}

Result<std::vector<std::uint32_t>> Sandboxes::commandNumbers(Sandbox& sandbox) {
  using Numbers = Result<std::vector<std::uint32_t>>;
  return with(sandbox, [](Session& handle) -> Numbers {
    Numbers numbers;
    const auto used = handle.useLogs([&](int directory) {
      const auto logs = sys::RootDir::adopt(sys::Fd(::fcntl(directory, F_DUPFD_CLOEXEC, 0)), {});
      numbers = logs ? session::listCommands(*logs) : Numbers(std::unexpected(logs.error()));
    });
    return used ? numbers : Numbers(std::unexpected(used.error()));
  });
}

std::size_t Sandboxes::count() const {
  const std::lock_guard lock(mutex_);
  return known_.size();
}

Result<Session> Sandboxes::take(Sandbox& sandbox, std::uint64_t& generation) {
  {
    const std::lock_guard lock(sandbox.mutex_);
    generation = sandbox.generation_;
    if (!sandbox.idle_.empty()) {
      Session session = std::move(sandbox.idle_.back());
      sandbox.idle_.pop_back();
      return session;
    }
  }
  auto session = store_->find(sandbox.id());
  if (!session && isGone(session.error())) return std::unexpected(noSandbox(sandbox.id()));
  return session;
}

bool Sandboxes::exists(const Sandbox& sandbox) const {
  const auto session = store_->find(sandbox.id());
  return session || !isGone(session.error());
}

Error Sandboxes::explain(const Sandbox& sandbox, const Error& error) const {
  const auto session = store_->find(sandbox.id());
  if (!session && isGone(session.error())) return noSandbox(sandbox.id());  // expired, or removed by `caisson clean`
  if (!session) return error;
  if (error.stage != Stage::state || error.sys_errno != 0) return error;
  const auto info = session->info();
  if (!info || info->expires_in > 0) return error;
  return Error{.stage = Stage::usage,
               .call = "sandbox",
               .object = sandbox.id(),
               .sys_errno = ESRCH,
               .reason = "the sandbox has expired; its uncommitted changes are kept for a week",
               .hint = "POST /v1/sandboxes/" + sandbox.id() + "/extend"};
}

void Sandboxes::give(Sandbox& sandbox, Session session, std::uint64_t generation) {
  const std::lock_guard lock(sandbox.mutex_);
  if (generation == sandbox.generation_ && sandbox.idle_.size() < kIdleHandles)
    sandbox.idle_.push_back(std::move(session));
}

bool Sandboxes::isCreating(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return creating_.contains(key);
}

void Sandboxes::sweep() {
  (void)store_->clean(false);  // what a killed server left: its pool, sandboxes that were half created or removed
  std::unique_lock lock(mutex_);
  while (!ending_.wait_for(lock, kSweepEvery, [this] { return ended_; })) {
    lock.unlock();
    sweepOnce();
    lock.lock();
  }
}

void Sandboxes::sweepOnce() {
  std::map<std::string, SandboxPointer> before;
  std::set<std::string> creating;  // before the list: one that is created meanwhile is in neither
  {
    const std::lock_guard lock(mutex_);
    before = known_;
    for (const auto& [key, record] : creating_) creating.insert(key);
  }
  const auto live = store_->list();  // removes expired ones
  if (!live) return;
  std::set<std::string> ids, names;
  for (const SessionInfo& info : *live) {
    ids.insert(info.id);
    names.insert(info.name);
  }
  for (const auto& [id, sandbox] : before) {
    if (ids.contains(id)) {
      names.insert(sandbox->record().key);  // the name of one with unreadable metadata may be unknown
      continue;
    }
    {
      const std::lock_guard lock(mutex_);
      if (known_.erase(id) == 0) continue;  // destroyed meanwhile
    }
    events_.publish("sandbox.ended", id, sandbox->record().owner, {{"reason", "expired"}});
  }
  const auto files = records_.list("");
  if (!files) return;
  const std::int64_t old = (std::time(nullptr) - 60) * std::int64_t{1'000'000'000};
  for (const sys::DirectoryEntry& file : *files) {
    const std::string key = file.name.substr(0, file.name.rfind(".json"));
    const auto info = records_.stat(file.name);
    const bool in_use = names.contains(key) || creating.contains(key) || isCreating(key);
    if (!in_use && info && info->modified_ns < old) (void)records_.remove(file.name);
  }
}

}  // namespace caisson::service
