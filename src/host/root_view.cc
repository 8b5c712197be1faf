#include "host/root_view.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <set>

#include "base/text.h"

namespace caisson::host {
namespace {

using sys::Fd;

constexpr int kMaxLinks = 40;
constexpr std::size_t kMaxTopLevel = 1000;

bool isWhiteout(const struct stat& status) { return S_ISCHR(status.st_mode) && status.st_rdev == makedev(0, 0); }

/// Whether the directory hides those of the layers below it.
bool isOpaque(const Fd& directory) {
  char value = 0;
  const std::string path = "/proc/self/fd/" + std::to_string(directory.get());
  return ::getxattr(path.c_str(), "user.overlay.opaque", &value, 1) == 1 && value == 'y';
}

std::string linkText(int object) {
  char text[4096];
  const ssize_t length = ::readlinkat(object, "", text, sizeof(text));
  return length > 0 ? std::string(text, static_cast<std::size_t>(length)) : std::string();
}

std::string joined(const std::vector<std::string>& parts) {
  std::string path;
  for (const std::string& part : parts) path += "/" + part;
  return path.empty() ? "/" : path;
}

void prepend(std::string_view path, std::deque<std::string>& parts) {
  std::vector<std::string_view> pieces = split(path, '/');
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    if (!piece->empty() && *piece != ".") parts.emplace_front(*piece);
  }
}

std::vector<Fd> copies(const std::vector<Fd>& directories) {
  std::vector<Fd> result;
  for (const Fd& one : directories) result.emplace_back(::fcntl(one.get(), F_DUPFD_CLOEXEC, 3));
  return result;
}

}  // namespace

Result<RootView> RootView::open(const std::vector<std::string>& layers) {
  std::vector<Fd> opened;
  for (const std::string& layer : layers) {
    Fd directory(::open(layer.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!directory) return fail(sysError(Stage::host, "open", layer, errno));
    opened.push_back(std::move(directory));
  }
  return RootView(std::move(opened));
}

std::optional<RootView::Entry> RootView::child(const std::vector<Fd>& directories, const std::string& name) {
  std::optional<Entry> entry;
  for (const Fd& directory : directories) {
    Fd object(::openat(directory.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status;
    if (!object || ::fstat(object.get(), &status) != 0) continue;
    if (isWhiteout(status)) return entry;
    if (!S_ISDIR(status.st_mode)) {
      if (entry) return entry;  // hidden by a directory above
      entry.emplace();
      entry->mode = status.st_mode;
      if (S_ISLNK(status.st_mode)) entry->link = linkText(object.get());
      entry->object = std::move(object);
      return entry;
    }
    if (!entry) {
      entry.emplace();
      entry->mode = status.st_mode;
    }
    const bool last = isOpaque(object);
    entry->directories.push_back(std::move(object));
    if (last) return entry;
  }
  return entry;
}

std::optional<std::string> RootView::walk(std::string_view path, std::optional<Entry>& found) const {
  std::deque<std::string> rest;
  prepend(path, rest);
  std::vector<std::string> done;
  std::vector<std::vector<Fd>> above;  // the directories of `done` without its last part
  found.emplace();
  found->mode = S_IFDIR;
  found->directories = copies(layers_);
  for (int links = 0; !rest.empty();) {
    const std::string name = std::move(rest.front());
    rest.pop_front();
    if (!found || !S_ISDIR(found->mode)) {
      if (found) return std::nullopt;  // through a file
      if (name == "..") return std::nullopt;
      done.push_back(name);
      continue;
    }
    if (name == "..") {  // the root's parent is the root
      if (done.empty()) continue;
      done.pop_back();
      found->directories = std::move(above.back());
      above.pop_back();
      continue;
    }
    auto next = child(found->directories, name);
    if (next && S_ISLNK(next->mode)) {
      if (++links > kMaxLinks || next->link.empty()) return std::nullopt;
      prepend(next->link, rest);
      if (!next->link.starts_with('/')) continue;
      done.clear();
      above.clear();
      found->directories = copies(layers_);
      continue;
    }
    above.push_back(std::move(found->directories));
    done.push_back(name);
    found = std::move(next);
  }
  return joined(done);
}

std::optional<std::string> RootView::resolve(std::string_view path) const {
  std::optional<Entry> found;
  return walk(path, found);
}

std::optional<std::string> RootView::realPath(std::string_view path) const {
  std::optional<Entry> found;
  auto real = walk(path, found);
  return found ? real : std::nullopt;
}

Fd RootView::openFile(std::string_view path) const {
  std::optional<Entry> found;
  if (!walk(path, found) || !found || !S_ISREG(found->mode)) return {};
  const std::string name = "/proc/self/fd/" + std::to_string(found->object.get());
  return Fd(::open(name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

std::optional<std::string> RootView::readFile(std::string_view path, std::size_t max_bytes) const {
  const Fd file = openFile(path);
  if (!file) return std::nullopt;
  std::string text(max_bytes + 1, '\0');
  std::size_t length = 0;
  for (ssize_t got; length < text.size() && (got = ::read(file.get(), text.data() + length, text.size() - length)) > 0;)
    length += static_cast<std::size_t>(got);
  if (length > max_bytes) return std::nullopt;
  text.resize(length);
  return text;
}

bool RootView::isDirectory(std::string_view path) const {
  std::optional<Entry> found;
  return walk(path, found) && found && S_ISDIR(found->mode);
}

bool RootView::isProgram(std::string_view path) const {
  std::optional<Entry> found;
  return walk(path, found) && found && S_ISREG(found->mode) && (found->mode & 0111U) != 0;
}

bool RootView::isFile(std::string_view path) const {
  std::optional<Entry> found;
  return walk(path, found) && found && S_ISREG(found->mode);
}

std::optional<std::map<std::string, std::string>> RootView::topLevel() const {
  std::set<std::string> names;
  for (const Fd& layer : layers_) {
    const int list = ::openat(layer.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* stream = list < 0 ? nullptr : ::fdopendir(list);
    if (stream == nullptr) continue;
    while (const dirent* entry = ::readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace(name);
      if (names.size() > kMaxTopLevel) break;
    }
    ::closedir(stream);
    if (names.size() > kMaxTopLevel) return std::nullopt;
  }
  std::map<std::string, std::string> entries;
  for (const std::string& name : names) {
    if (const auto entry = child(layers_, name)) entries.emplace(name, entry->link);
  }
  return entries;
}

}  // namespace caisson::host
