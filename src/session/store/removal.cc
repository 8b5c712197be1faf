#include "session/store/removal.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

namespace caisson::session {

Removal beginRemoval(const sys::RootDir& parent, const std::string& name) {
  auto directory = parent.openFile(name, {.flags = O_RDONLY, .types = {sys::FileType::directory}});
  if (!directory) return {};
  if (::flock(directory->get(), LOCK_EX | LOCK_NB) == 0) return {.lock = std::move(*directory)};
  return {.elsewhere = errno == EWOULDBLOCK};
}

}  // namespace caisson::session
