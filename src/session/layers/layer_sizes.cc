#include "session/layers/layer_sizes.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <set>

#include "supervise/limits/closed_tree.h"
#include "supervise/limits/tree_size.h"

namespace caisson::session {
namespace {

constexpr const char* kSizes = ".sizes";  // removed whenever layers are: links then count anew
constexpr std::uint64_t kMaxSizes = 1U << 20;
constexpr auto kMeasureTimeout = std::chrono::milliseconds(2000);
constexpr auto kWalkTime = std::chrono::milliseconds(250);  // of one layer, which may be huge

using Clock = std::chrono::steady_clock;

/// "name bytes inodes" per line.
std::map<std::string, LayerSize> readSizes(const sys::RootDir& store) {
  std::map<std::string, LayerSize> sizes;
  const auto text = store.readFile(kSizes, kMaxSizes);
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::size_t first = line.find(' '), second = line.rfind(' ');
    if (first == std::string_view::npos || first == second) continue;
    LayerSize size;
    std::from_chars(line.data() + first + 1, line.data() + second, size.bytes);
    std::from_chars(line.data() + second + 1, line.data() + line.size(), size.inodes);
    sizes[std::string(line.substr(0, first))] = size;
  }
  return sizes;
}

}  // namespace

std::optional<LayerSize> measureInHelper(int layer) {
  const auto size = supervise::ClosedSizes().measure(layer, {}, kMeasureTimeout);
  return size ? std::optional(LayerSize{size->bytes, size->inodes}) : std::nullopt;
}

LayerSize sizeOfFrozen(const SessionPaths& paths, const Metadata& metadata,
                       const std::function<std::optional<LayerSize>(int layer)>& closed) {
  std::set<std::string> layers(metadata.frozen.begin(), metadata.frozen.end());
  for (const Checkpoint& one : metadata.checkpoints) layers.insert(one.frozen.begin(), one.frozen.end());
  LayerSize sum;
  auto store = paths.stores().enter(metadata.family);
  if (!store || layers.empty()) return sum;
  auto sizes = readSizes(*store);
  bool measured = false;
  for (const std::string& layer : layers) {
    auto known = sizes.find(layer);
    if (known == sizes.end()) {
      auto directory = store->openFile(layer, {.flags = O_RDONLY, .types = {sys::FileType::directory}});
      if (!directory) continue;
      const auto seen = supervise::measureTree(directory->get(), {.deadline = Clock::now() + kWalkTime});
      LayerSize size{seen.bytes, seen.inodes};
      const auto whole = seen.hidden ? closed(directory->get()) : std::nullopt;
      if (whole) size = {std::max(size.bytes, whole->bytes), std::max(size.inodes, whole->inodes)};
      if (seen.hidden && (!whole || !whole->complete)) {  // not a figure to keep
        sum.bytes += size.bytes;
        sum.inodes += size.inodes;
        continue;
      }
      known = sizes.emplace(layer, size).first;
      measured = true;
    }
    sum.bytes += known->second.bytes;
    sum.inodes += known->second.inodes;
  }
  if (measured) {
    std::string text;
    for (const auto& [name, size] : sizes) {
      if (layers.contains(name)) {
        text += name + " " + std::to_string(size.bytes) + " " + std::to_string(size.inodes) + "\n";
      }
    }
    (void)store->writeFileAtomic(kSizes, text, 0600);
  }
  return sum;
}

LayerSize sizeOfUpper(const SessionPaths& paths, const Metadata& metadata) {
  auto store = paths.stores().enter(metadata.family);
  if (!store) return {};
  auto directory = store->openFile(metadata.upper, {.flags = O_RDONLY, .types = {sys::FileType::directory}});
  if (!directory) return {};
  const auto seen = supervise::measureTree(directory->get(), {.deadline = Clock::now() + kWalkTime});
  const auto whole = seen.hidden ? measureInHelper(directory->get()) : std::nullopt;
  return whole.value_or(LayerSize{seen.bytes, seen.inodes});
}

}  // namespace caisson::session
