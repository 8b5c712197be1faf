#include "host/root_ids.h"

#include <linux/capability.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "base/text.h"
#include "sys/kernel_abi.h"
#include "sys/kernel_file.h"

namespace caisson::host {
namespace {

/// Above the ranges of users and of systemd's containers.
constexpr std::uint64_t kFirst = 0x70000000;
constexpr std::uint64_t kOffset = 0x10000;
/// A map needs some room for ids that no other user has.
constexpr std::uint64_t kLeastIds = 4096;

bool holds(const std::vector<MappedIds>& map, std::uint64_t id) {
  return std::ranges::any_of(
      map, [&](const MappedIds& range) { return id >= range.inside && id - range.inside < range.count; });
}

bool mapsZeroToZero(const std::vector<MappedIds>& map) {
  return std::ranges::any_of(map, [](const MappedIds& range) { return range.inside == 0 && range.outside == 0; });
}

struct Drawn {
  std::uint64_t id, offset;
};

/// Draws an id for the payload and one for its broker. Two sandboxes rarely share one, since they would share per-user
/// limits and counts. In a small map, such as a container's, they are from the upper half of its largest range.
std::optional<Drawn> draw(const RootFacts& root) {
  const auto usable = [&](const Drawn& drawn) {
    return holds(root.uids, drawn.id) && holds(root.gids, drawn.id) && holds(root.uids, drawn.id + drawn.offset) &&
           holds(root.gids, drawn.id + drawn.offset);
  };
  const Drawn high{kFirst + root.random, kOffset};
  if (usable(high)) return high;
  const auto largest = std::ranges::max_element(root.uids, {}, &MappedIds::count);
  if (largest == root.uids.end() || largest->count < kLeastIds) return std::nullopt;
  const std::uint64_t quarter = largest->count / 4;
  const Drawn low{largest->inside + 2 * quarter + root.random % quarter, quarter};
  return usable(low) ? std::optional(low) : std::nullopt;
}

}  // namespace

std::vector<MappedIds> parseIdMap(std::string_view text) {
  std::vector<MappedIds> map;
  for (const std::string_view line : split(text, '\n')) {
    std::uint64_t numbers[3] = {};
    std::size_t count = 0;
    for (const std::string_view word : split(line, ' ')) {
      const auto parsed =
          count < 3 ? std::from_chars(word.begin(), word.end(), numbers[count]) : std::from_chars_result{word.begin()};
      if (parsed.ptr != word.end()) break;
      ++count;
    }
    if (count == 3) map.push_back({numbers[0], numbers[1], numbers[2]});
  }
  return map;
}

RootFacts readRootFacts() {
  RootFacts root;
  root.uid = ::geteuid();
  if (root.uid != 0) return root;
  root.uids = parseIdMap(sys::readKernelFile("/proc/self/uid_map"));
  root.gids = parseIdMap(sys::readKernelFile("/proc/self/gid_map"));
  struct {
    std::uint32_t version;
    int pid;
  } header{sys::kCapabilityVersion3, 0};
  struct {
    std::uint32_t effective, permitted, inheritable;
  } data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return root;
  const auto has = [&](int capability) { return (data[0].effective >> capability & 1U) != 0; };
  root.set_ids = has(CAP_SETUID) && has(CAP_SETGID);
  root.map_mounts = has(CAP_SYS_ADMIN);
  root.map_zero = has(CAP_SETFCAP);
  if (::getrandom(&root.random, sizeof(root.random), 0) != sizeof(root.random)) {
    root.random = static_cast<std::uint16_t>(::getpid());
  }
  return root;
}

void observeRoot(const RootFacts& root, plan::HostFacts& facts) {
  if (root.uid != 0) return;
  const bool host_root = root.uids.empty() || mapsZeroToZero(root.uids) || mapsZeroToZero(root.gids);
  if (!host_root && root.map_zero) return;  // an ordinary id of the host
  const std::optional<Drawn> drawn = root.set_ids ? draw(root) : std::nullopt;
  if (drawn) {
    facts.may_map_other_ids = true;
    facts.may_map_mounts = host_root && root.map_mounts;
    facts.payload_id = static_cast<uid_t>(drawn->id);
    facts.broker_offset = static_cast<uid_t>(drawn->offset);
    return;
  }
  const std::string consequence =
      host_root ? ": the program would be root on the host"
                : ": the kernel maps uid 0 of this user namespace only with CAP_SETFCAP, and there is no other id";
  facts.why_no_other_id = (root.set_ids ? "the id map of this user namespace has no other id for the program"
                                        : "root without CAP_SETUID and CAP_SETGID, the right to become another user") +
                          consequence;
}

}  // namespace caisson::host
