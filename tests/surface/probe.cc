#include "surface/probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>

namespace caisson::surface {
namespace {

constexpr int kFamilies = 46;
constexpr int kTypes[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM, SOCK_SEQPACKET, SOCK_PACKET};

bool opens(int family, int type, int protocol) {
  const int fd = socket(family, type | SOCK_CLOEXEC, protocol);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

/// The internet families have many protocols, and modules for them; of others the first few tell.
int protocolsOf(int family) { return family == AF_INET || family == AF_INET6 ? 263 : family == AF_NETLINK ? 32 : 8; }

struct Sockets {
  std::set<int> families;
  int kinds = 0;  ///< family, type and protocol that can be opened together
};

Sockets trySockets() {
  Sockets found;
  for (int family = 1; family < kFamilies; ++family) {
    for (const int type : kTypes) {
      for (int protocol = 0; protocol < protocolsOf(family); ++protocol) {
        if (!opens(family, type, protocol)) continue;
        found.families.insert(family);
        ++found.kinds;
      }
    }
  }
  return found;
}

bool isReadable(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  char letter;
  const bool some = read(fd, &letter, 1) > 0;
  close(fd);
  return some;
}

/// Files below a directory of /proc that give at least a byte.
int countReadable(const std::string& directory, int depth = 0) {
  DIR* stream = opendir(directory.c_str());
  if (stream == nullptr || depth > 8) {
    if (stream != nullptr) closedir(stream);
    return 0;
  }
  int count = 0;
  while (const dirent* entry = readdir(stream)) {
    const std::string name = entry->d_name;
    const bool process = depth == 0 && name[0] >= '0' && name[0] <= '9';
    if (name == "." || name == ".." || process || (depth == 0 && name == "sys")) continue;
    const std::string path = directory + "/" + name;
    if (entry->d_type == DT_DIR) count += countReadable(path, depth + 1);
    if (entry->d_type == DT_REG && isReadable(path)) ++count;
  }
  closedir(stream);
  return count;
}

}  // namespace

int probe() {
  const Sockets sockets = trySockets();
  std::string families;
  for (const int family : sockets.families) families += (families.empty() ? "" : ",") + std::to_string(family);
  std::printf("{\"socket_families\":[%s],\"socket_kinds\":%d,\"proc_files\":%d,\"proc_sys_files\":%d}\n",
              families.c_str(), sockets.kinds, countReadable("/proc"), countReadable("/proc/sys", 1));
  std::fflush(stdout);
  char letter;
  while (read(STDIN_FILENO, &letter, 1) > 0) {
  }
  return 0;
}

}  // namespace caisson::surface
