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
#include "supervise/tree_size.h"

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

/// A payload may close directories of its own, whose size their owner can't see: a child in a user namespace can.
supervise::TreeSize measureLayer(int directory) {
  auto size = supervise::measureTree(directory, ~0ULL - 1, ~0ULL - 1, std::nullopt);
  int ends[2];
  if (!size.hidden || ::pipe2(ends, O_CLOEXEC) != 0) return size;
  const sys::Fd ours(ends[0]);
  sys::Fd theirs(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    if (!seeClosedDirectories()) ::_exit(1);
    const auto whole = supervise::measureTree(directory, ~0ULL - 1, ~0ULL - 1, std::nullopt);
    const std::uint64_t values[2] = {whole.bytes, whole.inodes};
    ::_exit(::write(theirs.get(), values, sizeof(values)) == static_cast<ssize_t>(sizeof(values)) ? 0 : 1);
  }
  theirs.reset();
  std::uint64_t values[2] = {};
  pollfd wait{ours.get(), POLLIN, 0};
  if (child > 0 && ::poll(&wait, 1, kMeasureTimeoutMs) > 0 &&
      ::read(ours.get(), values, sizeof(values)) == static_cast<ssize_t>(sizeof(values))) {
    size.bytes = std::max(size.bytes, values[0]);
    size.inodes = std::max(size.inodes, values[1]);
  }
  if (child > 0) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  return size;
}

}  // namespace

LayerSize sizeOfFrozen(const SessionPaths& paths, const Metadata& metadata) {
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
      const auto size = measureLayer(directory->get());
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
