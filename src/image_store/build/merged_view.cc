#include "image_store/build/merged_view.h"

#include <fcntl.h>
#include <sys/xattr.h>

#include <algorithm>
#include <set>

#include "base/path_parts.h"
#include "base/text.h"

namespace caisson::image {
namespace {

constexpr int kMaxLinks = 40;

bool isWhiteout(const sys::FileInfo& info) { return info.type == sys::FileType::character_device; }

}  // namespace

Result<MergedView> MergedView::open(const std::vector<std::string>& layers) {
  std::vector<sys::RootDir> list;
  for (const std::string& path : layers) {
    auto root = sys::RootDir::open(path);
    if (!root) return fail(root.error());
    list.push_back(std::move(*root));
  }
  return MergedView(std::move(list));
}

bool MergedView::opaque(std::size_t layer, const std::string& directory) const {
  const auto file = layers_[layer].openFile(directory, {.types = {sys::FileType::directory}});
  char value = 0;
  return file && ::fgetxattr(file->get(), "user.overlay.opaque", &value, 1) == 1 && value == 'y';
}

std::vector<std::size_t> MergedView::contributors(const std::string& directory) const {
  std::vector<std::size_t> all;
  for (std::size_t at = layers_.size(); at-- > 0;) all.push_back(at);
  if (directory.empty()) return all;
  std::vector<std::size_t> result;
  for (const std::size_t layer : contributors(directoryOf(directory))) {
    const auto info = layers_[layer].stat(directory);
    if (!info) continue;
    if (info->type != sys::FileType::directory) break;
    result.push_back(layer);
    if (opaque(layer, directory)) break;
  }
  return result;
}

std::optional<MergedView::Entry> MergedView::find(const std::string& path) const {
  if (path.empty()) return Entry{.info = {.type = sys::FileType::directory, .mode = 0755}};
  for (const std::size_t layer : contributors(directoryOf(path))) {
    const auto info = layers_[layer].stat(path);
    if (!info) continue;
    if (isWhiteout(*info)) return std::nullopt;
    return Entry{layer, *info};
  }
  return std::nullopt;
}

Result<std::vector<std::string>> MergedView::list(const std::string& path) const {
  std::set<std::string> names, hidden;
  for (const std::size_t layer : contributors(path)) {
    const auto entries = layers_[layer].list(path);
    if (!entries) return fail(entries.error());
    for (const sys::DirectoryEntry& entry : *entries) {
      if (entry.type == sys::FileType::character_device) {
        hidden.insert(entry.name);
      } else if (!hidden.contains(entry.name)) {
        names.insert(entry.name);
      }
    }
  }
  return std::vector<std::string>(names.begin(), names.end());
}

std::optional<std::string> MergedView::resolve(const std::string& path) const {
  std::vector<std::string> todo;
  const auto push = [&todo](std::string_view text) {
    auto parts = split(text, '/');
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) todo.emplace_back(*part);
  };
  push(path);
  std::string here;
  int links = 0;
  while (!todo.empty()) {
    const std::string part = std::move(todo.back());
    todo.pop_back();
    if (part == ".") continue;
    if (part == "..") {
      here = directoryOf(here);
      continue;
    }
    const std::string next = here.empty() ? part : here + "/" + part;
    const auto entry = find(next);
    if (!entry || entry->info.type != sys::FileType::link) {
      here = next;
      continue;
    }
    const auto target = layers_[entry->layer].readLink(next);
    if (!target || ++links > kMaxLinks) return std::nullopt;
    if (target->starts_with('/')) here.clear();
    push(*target);
  }
  return here;
}

}  // namespace caisson::image
