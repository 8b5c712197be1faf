#include "session/commit/committed.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/path_parts.h"

namespace caisson::session {
namespace {

constexpr std::uint64_t kMaxBytes = 1U << 30;  // as a journal
constexpr std::string_view kRemovedRecord = "-", kRestoredRecord = "+";

std::string objectOf(const sys::FileInfo& info) {
  return std::to_string(info.device) + "." + std::to_string(info.inode) + ".";
}

std::string stampOf(const sys::FileInfo& info) {
  return objectOf(info) + std::to_string(info.size) + "." + std::to_string(info.modified_ns) + "." +
         std::to_string(info.changed_ns);
}

}  // namespace

Result<Committed> Committed::load(const sys::RootDir& session, const char* name) {
  auto file = session.openFile(name, {.flags = O_WRONLY | O_CREAT | O_APPEND});
  if (!file) return fail(file.error());
  Committed committed(std::move(*file));
  auto text = session.readFile(name, kMaxBytes);
  if (!text) return fail(text.error());
  // One record is a NUL, the stamp, `=` and the hash, `-` or `+`, a space, the path and a NUL. A torn last record has
  // no second NUL, and the next one starts with a NUL.
  for (std::size_t begin = 0;;) {
    const std::size_t end = text->find('\0', begin);
    if (end == std::string::npos) break;
    const std::size_t space = text->find(' ', begin);
    if (space < end) committed.read(text->substr(begin, space - begin), text->substr(space + 1, end - space - 1));
    begin = end + 1;
  }
  return committed;
}

void Committed::read(std::string value, const std::string& path) {
  ++records_;
  if (value == kRemovedRecord) {
    removed_[path] = records_;
  } else if (value == kRestoredRecord) {
    removed_.erase(path);
    removed_.erase(path + "/");
  } else if (value.starts_with('=')) {
    hashes_[path] = value.substr(1);
  } else {
    stamps_[path] = {std::move(value), records_};
  }
}

bool Committed::isIn(const sys::RootDir& directory) { return directory.stat(kCommitted).has_value(); }

bool Committed::isOurs(const std::string& path, const sys::FileInfo& now) const {
  const auto found = stamps_.find(path);
  return found != stamps_.end() && found->second.text == stampOf(now);
}

bool Committed::isSameObject(const std::string& path, const sys::FileInfo& now) const {
  for (const std::string& name : {path, path + "/"}) {
    const auto found = stamps_.find(name);
    if (found != stamps_.end() && found->second.text.starts_with(objectOf(now))) return true;
  }
  return false;
}

std::string Committed::hashOf(const std::string& path) const {
  const auto found = hashes_.find(path);
  return found == hashes_.end() ? "" : found->second;
}

LastChange Committed::lastChange(const std::string& path) const {
  std::size_t removed = 0;
  const auto look = [&](const std::string& at) {
    if (const auto found = removed_.find(at); found != removed_.end()) removed = std::max(removed, found->second);
  };
  if (!removed_.empty()) {
    look(path);
    for (std::string above = directoryOf(path); !above.empty(); above = directoryOf(above)) {
      look(above);
      look(above + "/");
    }
  }
  const auto put = stamps_.find(path);
  if (put != stamps_.end() && put->second.order > removed) return LastChange::put;
  return removed != 0 ? LastChange::removed : LastChange::none;
}

void Committed::append(std::string_view value, const std::string& path) {
  pending_ += '\0';
  pending_ += value;
  pending_ += ' ';
  pending_ += path;
  pending_ += '\0';
  read(std::string(value), path);
}

void Committed::add(const std::string& path, const sys::FileInfo& now, const std::string& sha256) {
  if (!sha256.empty()) addHash(path, sha256);
  append(stampOf(now), path);
}

void Committed::addHash(const std::string& path, const std::string& sha256) { append("=" + sha256, path); }

void Committed::addFrom(const Committed& other, const std::string& path) {
  for (const std::string& name : {path, path + "/"}) {
    if (const std::string hash = other.hashOf(name); !hash.empty()) addHash(name, hash);
  }
  if (const auto found = other.stamps_.find(path); found != other.stamps_.end()) append(found->second.text, path);
}

void Committed::addRemoved(const std::string& path) { append(kRemovedRecord, path); }

void Committed::addRestored(const std::string& path) { append(kRestoredRecord, path); }

Result<void> Committed::save() {
  for (std::size_t done = 0; done < pending_.size();) {
    const ssize_t wrote = ::write(file_.get(), pending_.data() + done, pending_.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail(sysError(Stage::state, "write", kCommitted, errno));
    done += static_cast<std::size_t>(wrote);
  }
  pending_.clear();
  return {};
}

}  // namespace caisson::session
