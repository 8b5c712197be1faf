#include "session/commit/committed.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace caisson::session {
namespace {

constexpr const char* kFile = "committed";
constexpr std::uint64_t kMaxBytes = 256U << 20;

std::string stampOf(const sys::FileInfo& info) {
  return std::to_string(info.device) + "." + std::to_string(info.inode) + "." + std::to_string(info.size) + "." +
         std::to_string(info.modified_ns) + "." + std::to_string(info.changed_ns);
}

}  // namespace

Result<Committed> Committed::load(const sys::RootDir& session) {
  auto file = session.openFile(kFile, {.flags = O_WRONLY | O_CREAT | O_APPEND});
  if (!file) return fail(file.error());
  Committed committed(std::move(*file));
  auto text = session.readFile(kFile, kMaxBytes);
  if (!text) return fail(text.error());
  // One record is the stamp, a space, the path and a NUL. A torn last record has no NUL and is left out.
  for (std::size_t begin = 0;;) {
    const std::size_t end = text->find('\0', begin);
    if (end == std::string::npos) break;
    const std::size_t space = text->find(' ', begin);
    if (space < end) committed.stamps_[text->substr(space + 1, end - space - 1)] = text->substr(begin, space - begin);
    begin = end + 1;
  }
  return committed;
}

bool Committed::isOurs(const std::string& path, const sys::FileInfo& now) const {
  const auto found = stamps_.find(path);
  return found != stamps_.end() && found->second == stampOf(now);
}

Result<void> Committed::add(const std::string& path, const sys::FileInfo& now) {
  std::string record = stampOf(now) + " " + path;
  record += '\0';
  if (::write(file_.get(), record.data(), record.size()) != static_cast<ssize_t>(record.size())) {
    return fail(sysError(Stage::state, "write", kFile, errno));
  }
  stamps_[path] = stampOf(now);
  return {};
}

}  // namespace caisson::session
