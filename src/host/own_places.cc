#include "host/own_places.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "approval/owner.h"
#include "host/state_homes.h"
#include "host/state_mounts.h"
#include "sys/real_name.h"
#include "sys/state_home.h"

namespace caisson::host {

OwnPlaces findOwnPlaces() {
  std::set<std::string> states, paths, links;
  const auto add = [&](const std::string& path, std::set<std::string>& kind) {
    sys::RealName name = sys::realName(path);
    if (!name.path.empty()) kind.insert(std::move(name.path));
    links.insert(name.links.begin(), name.links.end());
  };
  add(sys::stateHome(), states);
  add(sys::defaultStateHome(), states);
  add(approval::userConfigDirectory(), paths);
  // Another environment, such as that of a service, may have the defaults of the user database.
  if (const std::string home = sys::homeFromPasswd(::geteuid()); !home.empty()) {
    add(home + "/.local/share/caisson", states);
    add(home + "/.config/caisson", paths);
  }
  add("/etc/caisson", paths);
  if (const auto others = otherStateHomes()) paths.insert(others->begin(), others->end());
  for (const std::string& state : states) {
    paths.insert(state);
    paths.insert(sys::memoryStores(::geteuid(), state));
  }
  OwnPlaces places{{paths.begin(), paths.end()}, {states.begin(), states.end()}};
  std::vector<std::string> mounts = otherNamesOf(places.paths);
  places.paths.insert(places.paths.end(), mounts.begin(), mounts.end());
  places.paths.insert(places.paths.end(), links.begin(), links.end());
  return places;
}

}  // namespace caisson::host
