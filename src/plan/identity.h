// Who the payload is, inside its user namespace and on the host.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace caisson::plan {

/// Consecutive ids of the host.
struct IdRange {
  std::uint32_t first = 0, count = 0;
};

/// Ids that the host gives an ordinary caller beside its own.
struct SubordinateIds {
  uid_t uid = 0;  ///< one of them, for a separate user
  gid_t gid = 0;
  IdRange uids, gids;                  ///< all of them
  std::string uid_helper, gid_helper;  ///< the programs that map them
  std::string why_not;                 ///< not empty: there are none
};

struct Identity {
  uid_t inside_uid = 1000, outside_uid = 0;
  gid_t inside_gid = 1000, outside_gid = 0;
  uid_t broker_uid = 0;             ///< of a root caller: not the payload's, which a process that escapes would have
  bool parent_writes_maps = false;  ///< a root caller maps to another id
  bool change_user = false;         ///< the payload's process starts as another user than the sandbox's
  bool maps_files = false;          ///< the parent prepares mounts that show the caller's files as the payload's
  /// Programs that write the maps, for an ordinary caller whose payload gets subordinate ids. Empty: none are needed.
  std::string uid_helper, gid_helper;
  /// Subordinate ids that are 1, 2 and so on inside, beside the payload's own 0.
  IdRange more_uids, more_gids;
  [[nodiscard]] bool usesHelpers() const { return !uid_helper.empty(); }
  [[nodiscard]] bool hasMoreIds() const { return more_uids.count > 0; }
  /// The payload's own id is a subordinate one (isolation.separate_user).
  [[nodiscard]] bool subordinate() const { return usesHelpers() && !hasMoreIds(); }
};

/// Capabilities over the sandbox's own user namespace that root inside has if more ids than its own are mapped: to
/// change owners and ids, to use files of all of them, and to signal their processes.
inline constexpr std::string_view kIdCapabilityNames = "chown dac_override fowner kill setgid setuid, over its own ids";
inline constexpr std::uint64_t kIdCapabilities = 1U << 0 /* CAP_CHOWN */ | 1U << 1 /* CAP_DAC_OVERRIDE */ |
                                                 1U << 3 /* CAP_FOWNER */ | 1U << 5 /* CAP_KILL */ |
                                                 1U << 6 /* CAP_SETGID */ | 1U << 7 /* CAP_SETUID */;

}  // namespace caisson::plan
