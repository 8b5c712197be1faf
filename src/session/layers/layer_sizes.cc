#include "session/layers/layer_sizes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "session/layers/squash.h"
#include "supervise/limits/tree_size.h"

namespace caisson::session {
namespace {

constexpr const char* kSizes = ".sizes";  // removed whenever layers are: links then count anew
constexpr std::uint64_t kMaxSizes = 1U << 20;
constexpr int kMeasureTimeoutMs = 2000;

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

std::optional<LayerSize> measureClosed(int layer) {
  if (!seeClosedDirectories()) return std::nullopt;
  const auto size = supervise::measureTree(layer, ~0ULL - 1, ~0ULL - 1, std::nullopt);
  return LayerSize{size.bytes, size.inodes};
}

std::optional<LayerSize> measureClosedInChild(int layer) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const sys::Fd ours(ends[0]);
  sys::Fd theirs(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto whole = measureClosed(layer);
    ::_exit(whole && ::write(theirs.get(), &*whole, sizeof(*whole)) == static_cast<ssize_t>(sizeof(*whole)) ? 0 : 1);
  }
  if (child < 0) return std::nullopt;
  theirs.reset();
  LayerSize size;
  pollfd wait{ours.get(), POLLIN, 0};
  const bool measured = ::poll(&wait, 1, kMeasureTimeoutMs) > 0 &&
                        ::read(ours.get(), &size, sizeof(size)) == static_cast<ssize_t>(sizeof(size));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  if (!measured) return std::nullopt;
  return size;
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
      auto size = supervise::measureTree(directory->get(), ~0ULL - 1, ~0ULL - 1, std::nullopt);
      if (const auto whole = size.hidden ? closed(directory->get()) : std::nullopt) {
        size.bytes = std::max(size.bytes, whole->bytes);
        size.inodes = std::max(size.inodes, whole->inodes);
      }
      known = sizes.emplace(layer, LayerSize{size.bytes, size.inodes}).first;
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
  const auto size = supervise::measureTree(directory->get(), ~0ULL - 1, ~0ULL - 1, std::nullopt);
  return {size.bytes, size.inodes};
}

}  // namespace caisson::session
