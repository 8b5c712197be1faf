#include "audit/metrics.h"

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <type_traits>

#include "audit/files.h"
#include "sys/state_home.h"

namespace caisson::audit {
namespace {

constexpr const char* kName = "metrics";

/// The file's content. The size acts as a version: another layout has another size.
struct Stored {
  std::uint64_t magic = kMagic;
  Metrics metrics;

  static constexpr std::uint64_t kMagic = 0x6361'6973'6d65'7401;
};
static_assert(std::is_trivially_copyable_v<Stored>);

Stored load(int file) {
  Stored stored;
  const ssize_t got = ::pread(file, &stored, sizeof(stored), 0);
  return got == static_cast<ssize_t>(sizeof(stored)) && stored.magic == Stored::kMagic ? stored : Stored{};
}

/// Holds a lock on the file briefly. Waiting is bounded, since a stopped holder must not block every process.
class Turn {
 public:
  Turn(int file, int kind) : file_(file) {
    for (int tries = 0; tries < 500 && !taken_; ++tries) {
      taken_ = ::flock(file, kind | LOCK_NB) == 0;
      const timespec pause{0, 100'000};
      if (!taken_) ::nanosleep(&pause, nullptr);
    }
  }
  ~Turn() {
    if (taken_) ::flock(file_, LOCK_UN);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  [[nodiscard]] bool taken() const { return taken_; }

 private:
  int file_;
  bool taken_ = false;
};

void addEach(std::span<std::uint64_t> into, std::span<const std::uint64_t> other) {
  for (std::size_t at = 0; at < into.size(); ++at) into[at] += other[at];
}

void addCreated(std::span<Created> slots, std::uint64_t time) {
  Created& slot = slots[time % slots.size()];
  if (slot.time != time) slot = {time, 0};
  ++slot.count;
}

void mergeCreated(std::span<Created> into, std::span<const Created> other) {
  for (std::size_t at = 0; at < into.size(); ++at) {
    if (other[at].time == into[at].time) into[at].count += other[at].count;
    if (other[at].time > into[at].time) into[at] = other[at];
  }
}

}  // namespace

void Histogram::add(double value, const std::array<double, 12>& bounds) {
  std::size_t bucket = 0;
  while (bucket < bounds.size() && value > bounds[bucket]) ++bucket;
  ++buckets[bucket];
  ++count;
  sum += value;
}

void Histogram::add(const Histogram& other) {
  addEach(buckets, other.buckets);
  count += other.count;
  sum += other.sum;
}

double Histogram::quantile(double part, const std::array<double, 12>& bounds) const {
  const double wanted = part * static_cast<double>(count);
  std::uint64_t seen = 0;
  for (std::size_t at = 0; at < bounds.size(); ++at) {
    seen += buckets[at];
    if (count > 0 && static_cast<double>(seen) >= wanted) return bounds[at];
  }
  return count == 0 ? 0 : bounds.back();
}

double Metrics::rateOfLastMinute(std::uint64_t now) const {
  std::uint64_t total = 0;
  for (const Created& second : seconds)
    if (second.time + 60 > now && second.time <= now) total += second.count;
  return static_cast<double>(total) / 60;
}

double Metrics::rateOfLastHour(std::uint64_t now) const {
  double total = 0;
  const std::uint64_t minute_now = now / 60;
  for (const Created& minute : minutes) {
    if (minute.time > minute_now || minute.time + 60 < minute_now) continue;
    // Of the oldest minute only the end is within the hour.
    const double share = minute.time + 60 == minute_now ? static_cast<double>(60 - now % 60) / 60 : 1;
    total += share * static_cast<double>(minute.count);
  }
  return total / 3600;
}

void count(Metrics& metrics, const Event& event, std::uint64_t now) {
  if (metrics.since == 0) metrics.since = now;
  ++metrics.events[static_cast<std::size_t>(event.type) % metrics.events.size()];
  ++metrics.severities[static_cast<std::size_t>(event.severity)];
  if (event.type == EventType::sandbox_created) {
    addCreated(metrics.seconds, now);
    addCreated(metrics.minutes, now / 60);
  }
  if (!event.measures) return;
  const Measures& run = *event.measures;
  ++metrics.outcomes[std::min<std::size_t>(run.outcome, metrics.outcomes.size() - 1)];
  metrics.lifetime.add(run.wall_seconds, kSecondsBounds);
  metrics.cpu.add(run.cpu_seconds, kSecondsBounds);
  metrics.memory.add(static_cast<double>(run.peak_memory_bytes), kBytesBounds);
  metrics.read_bytes += run.read_bytes;
  metrics.written_bytes += run.written_bytes;
  metrics.network_bytes += run.network_bytes;
  metrics.syscalls_blocked += run.syscalls_blocked;
  metrics.network_denied += run.network_denied;
}

void merge(Metrics& into, const Metrics& other) {
  if (into.since == 0 || (other.since != 0 && other.since < into.since)) into.since = other.since;
  addEach(into.events, other.events);
  addEach(into.severities, other.severities);
  addEach(into.outcomes, other.outcomes);
  into.lifetime.add(other.lifetime);
  into.cpu.add(other.cpu);
  into.memory.add(other.memory);
  into.read_bytes += other.read_bytes;
  into.written_bytes += other.written_bytes;
  into.network_bytes += other.network_bytes;
  into.syscalls_blocked += other.syscalls_blocked;
  into.network_denied += other.network_denied;
  mergeCreated(into.seconds, other.seconds);
  mergeCreated(into.minutes, other.minutes);
}

Result<Metrics> readMetrics(const std::string& path) {
  auto directory = sys::openPrivateDirectory(path);
  if (!directory) return fail(directory.error());
  const auto file = openOwn(directory->get(), path, kName, O_RDONLY);
  if (!file && file.error().sys_errno == ENOENT) return Metrics{};
  if (!file) return fail(file.error());
  const Turn turn(file->get(), LOCK_SH);
  return load(file->get()).metrics;
}

void addMetrics(int directory, const std::string& path, const Metrics& counted) {
  const auto file = openOwn(directory, path, kName, O_RDWR | O_CREAT);
  if (!file) return;
  const Turn turn(file->get(), LOCK_EX);
  if (!turn.taken()) return;
  Stored stored = load(file->get());
  merge(stored.metrics, counted);
  (void)!::pwrite(file->get(), &stored, sizeof(stored), 0);
}

}  // namespace caisson::audit
