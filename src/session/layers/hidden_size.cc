#include "session/layers/hidden_size.h"

#include <fcntl.h>
#include <sys/xattr.h>

#include <algorithm>
#include <map>

#include "supervise/limits/tree_size.h"
#include "sys/thread_time.h"

namespace caisson::session {
namespace {

using sys::FileType;

constexpr std::size_t kMaxTreeDepth = 200;

bool isOpaque(int directory) {
  char value = 0;
  return ::fgetxattr(directory, "user.overlay.opaque", &value, 1) == 1 && value == 'y';
}

class HiddenSize {
 public:
  HiddenSize(std::vector<sys::RootDir> layers, std::vector<bool> counted, std::chrono::nanoseconds work,
             std::chrono::steady_clock::time_point deadline)
      : layers_(std::move(layers)), counted_(std::move(counted)), end_(sys::threadTime() + work), deadline_(deadline) {}

  LayerSize measure() {
    std::vector<std::size_t> all(layers_.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    visit("", all, 0);
    return sum_;
  }

 private:
  /// What an entry of an upper layer does to those of the same name below.
  struct Above {
    bool hides = false;                  ///< a file, a whiteout or an opaque directory
    std::vector<std::size_t> directory;  ///< layers whose directories are merged
  };

  [[nodiscard]] bool late() const { return std::chrono::steady_clock::now() > deadline_ || sys::threadTime() > end_; }

  /// A directory that `sources` (uppermost first) contribute to. One that lies in a single layer hides nothing.
  void visit(const std::string& path, const std::vector<std::size_t>& sources, std::size_t depth) {
    if (sources.size() < 2 || depth > kMaxTreeDepth) return;
    std::map<std::string, Above> names;
    for (const std::size_t layer : sources) {
      const auto entries = layers_[layer].list(path);
      if (!entries) continue;
      for (const sys::DirectoryEntry& entry : *entries) {
        if (late()) return;
        place(path, entry, layer, names[entry.name]);
      }
    }
    for (const auto& [name, above] : names) {
      visit(path.empty() ? name : path + "/" + name, above.directory, depth + 1);
    }
  }

  void place(const std::string& path, const sys::DirectoryEntry& entry, std::size_t layer, Above& above) {
    const std::string full = path.empty() ? entry.name : path + "/" + entry.name;
    const bool directory = entry.type == FileType::directory;
    if (above.hides || (!directory && !above.directory.empty())) {
      add(full, directory, layer);
      above.hides = true;
      return;
    }
    if (!directory) {
      above.hides = true;
      return;
    }
    above.directory.push_back(layer);
    const auto opened = layers_[layer].openFile(full, {.flags = O_RDONLY, .types = {FileType::directory}});
    above.hides = opened && isOpaque(opened->get());
  }

  void add(const std::string& path, bool directory, std::size_t layer) {
    if (counted_[layer]) return;
    if (!directory) {
      const auto info = layers_[layer].stat(path);
      if (!info) return;
      sum_.bytes += info->blocks * 512;
      sum_.inodes += 1;
      return;
    }
    const auto opened = layers_[layer].openFile(path, {.flags = O_RDONLY, .types = {FileType::directory}});
    if (!opened) return;
    const auto size = supervise::measureTree(opened->get(), {.deadline = deadline_});
    sum_.bytes += size.bytes;
    sum_.inodes += size.inodes + 1;
  }

  std::vector<sys::RootDir> layers_;
  std::vector<bool> counted_;
  std::chrono::nanoseconds end_;  ///< of sys::threadTime()
  std::chrono::steady_clock::time_point deadline_;
  LayerSize sum_;
};

}  // namespace

LayerSize sizeOfHidden(const sys::RootDir& store, const std::vector<std::string>& layers,
                       const std::set<std::string>& counted, std::chrono::nanoseconds work,
                       std::chrono::steady_clock::time_point deadline) {
  std::vector<sys::RootDir> directories;
  std::vector<bool> is_counted;
  for (const std::string& layer : layers) {
    auto entered = store.enter(layer);
    if (!entered) return {};
    directories.push_back(std::move(*entered));
    is_counted.push_back(counted.contains(layer));
  }
  return HiddenSize(std::move(directories), std::move(is_counted), work, deadline).measure();
}

}  // namespace caisson::session
