#include "session/commit/committed.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace caisson::session {
namespace {

constexpr const char* kFile = "committed";
constexpr std::uint64_t kMaxBytes = 256U << 20;

std::string objectOf(const sys::FileInfo& info) {
  return std::to_string(info.device) + "." + std::to_string(info.inode) + ".";
}

std::string stampOf(const sys::FileInfo& info) {
  return objectOf(info) + std::to_string(info.size) + "." + std::to_string(info.modified_ns) + "." +
         std::to_string(info.changed_ns);
}

}  // namespace

Result<Committed> Committed::load(const sys::RootDir& session) {
  auto file = session.openFile(kFile, {.flags = O_WRONLY | O_CREAT | O_APPEND});
  if (!file) return fail(file.error());
  Committed committed(std::move(*file));
  auto text = session.readFile(kFile, kMaxBytes);
  if (!text) return fail(text.error());
  // One record is a NUL, the stamp or `=` and the hash, a space, the path and a NUL. A torn last record has no second
  // NUL, and the next one starts with a NUL.
  for (std::size_t begin = 0;;) {
    const std::size_t end = text->find('\0', begin);
    if (end == std::string::npos) break;
    const std::size_t space = text->find(' ', begin);
    if (space < end) {
      const bool hash = (*text)[begin] == '=';
      std::string value = text->substr(begin + (hash ? 1 : 0), space - begin - (hash ? 1 : 0));
      (hash ? committed.hashes_ : committed.stamps_)[text->substr(space + 1, end - space - 1)] = std::move(value);
    }
    begin = end + 1;
  }
  return committed;
}

bool Committed::isOurs(const std::string& path, const sys::FileInfo& now) const {
  const auto found = stamps_.find(path);
  return found != stamps_.end() && found->second == stampOf(now);
}

bool Committed::isSameObject(const std::string& path, const sys::FileInfo& now) const {
  for (const std::string& name : {path, path + "/"}) {
    const auto found = stamps_.find(name);
    if (found != stamps_.end() && found->second.starts_with(objectOf(now))) return true;
  }
  return false;
}

std::string Committed::hashOf(const std::string& path) const {
  const auto found = hashes_.find(path);
  return found == hashes_.end() ? "" : found->second;
}

void Committed::add(const std::string& path, const sys::FileInfo& now, const std::string& sha256) {
  const auto append = [&](std::string_view value) {
    pending_ += '\0';
    pending_ += value;
    pending_ += ' ';
    pending_ += path;
    pending_ += '\0';
  };
  if (!sha256.empty()) {
    append("=" + sha256);
    hashes_[path] = sha256;
  }
  std::string stamp = stampOf(now);
  append(stamp);
  stamps_[path] = std::move(stamp);
}

Result<void> Committed::save() {
  for (std::size_t done = 0; done < pending_.size();) {
    const ssize_t wrote = ::write(file_.get(), pending_.data() + done, pending_.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail(sysError(Stage::state, "write", kFile, errno));
    done += static_cast<std::size_t>(wrote);
  }
  pending_.clear();
  return {};
}

}  // namespace caisson::session
