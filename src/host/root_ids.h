// The ids that a caller with uid 0 has for its payload: on a machine, in a container, in a user namespace.
//
// uid 0 is root on the host where the id map starts at the host's 0. There a payload needs another id, for which the
// caller needs CAP_SETUID and CAP_SETGID and a map that has one. Elsewhere (rootless podman, userns-remap,
// hostUsers: false) uid 0 is an ordinary id of the host, and the payload shares it as any other caller's does.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace caisson::host {

/// One line of /proc/self/uid_map.
struct MappedIds {
  std::uint64_t inside = 0, outside = 0, count = 0;
};

struct RootFacts {
  uid_t uid = 0;  ///< effective
  std::vector<MappedIds> uids, gids;
  bool set_ids = false;     ///< CAP_SETUID and CAP_SETGID
  bool map_mounts = false;  ///< CAP_SYS_ADMIN
  bool map_zero = false;    ///< CAP_SETFCAP: the kernel maps the parent's uid 0 only then
  std::uint16_t random = 0;
};

/// The lines of an id map; skips malformed ones.
std::vector<MappedIds> parseIdMap(std::string_view text);

/// Of this process.
RootFacts readRootFacts();

/// Sets may_map_other_ids, may_map_mounts, why_no_other_id, payload_id and broker_offset.
void observeRoot(const RootFacts& root, plan::HostFacts& facts);

}  // namespace caisson::host
