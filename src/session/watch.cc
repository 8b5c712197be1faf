#include "session/watch.h"

#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>
#include <thread>

#include "audit/log.h"
#include "session/attendant.h"
#include "session/sandbox.h"
#include "supervise/tree_size.h"

namespace caisson::session {
namespace {

using std::chrono::milliseconds;

constexpr auto kFirstLook = milliseconds(10);
constexpr auto kWhenSeldom = milliseconds(250);
constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr const char* kWatchLock = "watch.lock";
constexpr const char* kSizes = ".sizes";  // no layer: taken away whenever layers are, since links then count anew
constexpr std::uint64_t kMaxSizes = 1U << 20;

std::uint64_t less(std::uint64_t from, std::uint64_t what) { return from - std::min(from, what); }

/// What the session may still write to its upper layer. One that was over its quota before `start` may go on deleting;
/// what was written since then, before anybody looked, counts.
plan::DiskQuota quotaOfUpper(const plan::DiskQuota& whole, const KeptSize& frozen, int upper, const timespec& start) {
  plan::DiskQuota quota;
  quota.upper = true;
  if (whole.bytes) quota.bytes = less(*whole.bytes, frozen.bytes);
  if (whole.inodes) quota.inodes = less(*whole.inodes, frozen.inodes);
  const auto now = supervise::measureTree(upper, ~0ULL - 1, ~0ULL - 1, std::nullopt);
  if (now.bytes <= quota.bytes.value_or(~0ULL) && now.inodes <= quota.inodes.value_or(~0ULL)) return quota;
  const auto written = supervise::measureTree(upper, ~0ULL - 1, ~0ULL - 1, start);
  if (quota.bytes) quota.bytes = std::max(*quota.bytes, less(now.bytes, written.bytes));
  if (quota.inodes) quota.inodes = std::max(*quota.inodes, less(now.inodes, written.inodes));
  return quota;
}

/// "name bytes inodes" per line.
std::map<std::string, KeptSize> readSizes(const sys::RootDir& store) {
  std::map<std::string, KeptSize> sizes;
  const auto text = store.readFile(kSizes, kMaxSizes);
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::size_t first = line.find(' '), second = line.rfind(' ');
    if (first == std::string_view::npos || first == second) continue;
    KeptSize size;
    std::from_chars(line.data() + first + 1, line.data() + second, size.bytes);
    std::from_chars(line.data() + second + 1, line.data() + line.size(), size.inodes);
    sizes[std::string(line.substr(0, first))] = size;
  }
  return sizes;
}

}  // namespace

KeptSize sizeOfFrozen(const Place& place, const Metadata& metadata) {
  std::set<std::string> layers(metadata.frozen.begin(), metadata.frozen.end());
  for (const Checkpoint& one : metadata.checkpoints) layers.insert(one.frozen.begin(), one.frozen.end());
  KeptSize sum;
  auto store = place.stores().enter(metadata.family);
  if (!store || layers.empty()) return sum;
  auto sizes = readSizes(*store);
  bool measured = false;
  for (const std::string& layer : layers) {
    auto known = sizes.find(layer);
    if (known == sizes.end()) {
      auto directory = store->openFile(layer, {.flags = O_RDONLY, .types = {sys::FileType::directory}});
      if (!directory) continue;
      const auto size = supervise::measureTree(directory->get(), ~0ULL - 1, ~0ULL - 1, std::nullopt);
      known = sizes.emplace(layer, KeptSize{size.bytes, size.inodes}).first;
      measured = true;
    }
    sum.bytes += known->second.bytes;
    sum.inodes += known->second.inodes;
  }
  if (measured) {
    std::string text;
    for (const auto& [name, size] : sizes) {
      if (layers.contains(name)) {
        text += name + " " + std::to_string(size.bytes) + " " + std::to_string(size.inodes) + "\n";
      }
    }
    (void)store->writeFileAtomic(kSizes, text, 0600);
  }
  return sum;
}

KeptSize sizeOfUpper(const Place& place, const Metadata& metadata) {
  auto store = place.stores().enter(metadata.family);
  if (!store) return {};
  auto directory = store->openFile(metadata.upper, {.flags = O_RDONLY, .types = {sys::FileType::directory}});
  if (!directory) return {};
  const auto size = supervise::measureTree(directory->get(), ~0ULL - 1, ~0ULL - 1, std::nullopt);
  return {size.bytes, size.inodes};
}

std::uint64_t SessionWatch::memoryKills() const {
  const auto record = readInitRecord(directory_);
  return record ? sys::oomKillsOf(record->cgroup) : 0;
}

bool SessionWatch::needed(const plan::Plan& plan) {
  return plan.disk || plan.memory_bytes > 0 || plan.max_processes > 0;
}

SessionWatch::SessionWatch(const Place& place, const sys::RootDir& directory, const Metadata& metadata,
                           const plan::Plan& limits, std::function<Result<plan::Plan>()> whole)
    : place_(place),
      directory_(directory),
      metadata_(metadata),
      whole_(std::move(whole)),
      on_disk_(limits.disk.has_value()) {
  if (needed(limits)) first_ = Clock::now() + kFirstLook;
  // Files are stamped with a clock that may be a tick behind this one: what the command before has written is older for
  // certain, what this one writes within the tick is let pass.
  ::clock_gettime(CLOCK_REALTIME, &start_);
}

void SessionWatch::noteFreeRoom() {
  if (on_disk_) free_at_start_ = freeRoom();
}

std::uint64_t SessionWatch::freeRoom() const {
  struct statfs status{};
  if (::fstatfs(place_.stores().descriptor(), &status) != 0) return 0;
  return status.f_bavail * static_cast<std::uint64_t>(status.f_bsize);
}

std::optional<SessionWatch::Clock::time_point> SessionWatch::next() const {
  if (ended_ || over_) return std::nullopt;
  return watch_ ? watch_->next() : first_;
}

void SessionWatch::begin(Clock::time_point now) {
  first_ = now + kWhenSeldom;
  auto opened = Connection::open(directory_);
  const auto record = readInitRecord(directory_);
  if (!opened || !*opened || !record) {
    over_ = opened && !*opened;
    return;
  }
  auto plan = whole_();
  if (!plan) return;
  plan_ = std::move(*plan);
  plan_.cpu_seconds.reset();   // a command's own, and pid 1's to hold
  plan_.wall_seconds.reset();  // likewise
  connection_ = std::move(**opened);
  const auto holds = [&](const char* what) {
    return std::find(record->held.begin(), record->held.end(), what) != record->held.end();
  };
  cgroup_ = sys::Cgroup::keptElsewhere({.memory = holds("memory"), .pids = holds("pids")});
  if (auto store = place_.stores().enter(metadata_.family); store && plan_.disk) {
    auto upper = store->openFile(metadata_.upper, {.flags = O_RDONLY, .types = {sys::FileType::directory}});
    if (upper) upper_ = std::move(*upper);
  }
  if (plan_.disk && upper_) {
    plan_.disk = quotaOfUpper(*plan_.disk, sizeOfFrozen(place_, metadata_), upper_.get(), start_);
  }
  watch_.emplace(plan_, cgroup_, [](const std::string&) {});
  std::uint32_t mask = 0;
  std::vector<sys::Fd> directories;
  const std::size_t count = directoriesInMemory(plan_).size();
  for (std::uint32_t index = 0; index < count && index < 32; ++index) {
    Request ask;
    ask.ask = Ask::sized;
    ask.exec = index;
    auto answer = connection_->ask(ask, "session watch", metadata_.id);
    if (!answer || !answer->descriptor) continue;
    mask |= 1U << index;
    directories.push_back(std::move(answer->descriptor));
  }
  watch_->addSized(mask, std::move(directories));
  if (upper_) watch_->addUpper(upper_.get());
  watch_->begin(record->pid, now);
}

void SessionWatch::end(Limit limit) {
  ended_ = true;
  RunResult words;
  watch_->finish(true, words);
  for (const std::string& notice : words.notices) why_ += (why_.empty() ? "" : "; ") + notice;
  Request ask;
  ask.ask = Ask::enforce;
  ask.signal = static_cast<std::int32_t>(limit);
  if (connection_) (void)connection_->ask(ask, "session watch", metadata_.id);
}

std::optional<Limit> SessionWatch::look(Clock::time_point now) {
  if (ended_ || over_) return std::nullopt;
  if (!watch_) begin(now);
  if (!watch_) return std::nullopt;
  Request ask;
  ask.ask = Ask::measure;
  auto answer = connection_->ask(ask, "session watch", metadata_.id);
  if (!answer) {
    over_ = true;
    return std::nullopt;
  }
  const Reply& reply = std::get<Reply>(answer->what);
  busy_ = reply.value != 0;
  watch_->setIpcBytes(static_cast<std::uint64_t>(reply.amount));
  const auto reached = watch_->look(now);
  if (reached) end(*reached);
  return reached;
}

std::optional<Limit> SessionWatch::lookAtTheEnd() {
  if (ended_ || over_ || !on_disk_) return std::nullopt;
  const std::uint64_t now = freeRoom();
  if (now + kMiB > free_at_start_) return std::nullopt;
  return look(Clock::now());
}

void watchWhatLivesOn(const Place& place, const sys::RootDir& directory, const std::string& id) {
  // One that is about to leave looks once more after it has let go of this.
  if (auto free = lockFile(directory, kWatchLock, false); !free) return;
  (void)startAttendant(place, {"watch", id});
}

int watchUntilIdle(const Place& place, const sys::RootDir& directory, const Metadata& metadata) {
  auto planner = Planner::observe(directory, metadata);
  if (!planner) return 1;
  auto plan = planner->plan(metadata, {{"true"}, false});
  if (!plan) return 1;
  const auto whole = [&]() -> Result<plan::Plan> { return *plan; };
  for (bool more = true; more;) {
    auto turn = lockFile(directory, kWatchLock, false);
    if (!turn) return 0;  // somebody watches
    SessionWatch watch(place, directory, metadata, *plan, whole);
    auto limit = watch.look(SessionWatch::Clock::now());
    while (!limit && !watch.over() && watch.busy()) {
      std::this_thread::sleep_until(watch.next().value_or(SessionWatch::Clock::now() + kWhenSeldom));
      limit = watch.look(SessionWatch::Clock::now());
    }
    if (limit && metadata.policy.audit.enabled) {
      if (auto log = audit::Log::open()) {
        audit::Fields fields;
        fields.text("limit", name(*limit)).text("detail", watch.why());
        const audit::Event event{audit::EventType::limit_exceeded, audit::Severity::warn, metadata.id,
                                 std::move(fields)};
        (void)log->append({&event, 1});
      }
    }
    if (watch.over()) return 0;
    turn->reset();
    // Something may have begun just now, whose starter saw that this one still watches.
    SessionWatch again(place, directory, metadata, *plan, whole);
    (void)again.look(SessionWatch::Clock::now());
    more = !again.over() && again.busy();
  }
  return 0;
}

}  // namespace caisson::session
