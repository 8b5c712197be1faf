#include "supervise/workspace/mask_queue.h"

#include <utility>

#include "base/path_parts.h"

namespace caisson::supervise {

void MaskQueue::push(const std::string& path, bool written) {
  if (!all_.insert(path).second) return;
  Lane& lane = lanes_[written ? 1 : 0];
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? std::string() : path.substr(0, slash);
  auto& files = lane.files[directory];
  if (files.empty()) lane.turns.push_front(directory);
  files.push_back(path);
}

std::vector<std::string> MaskQueue::pop(std::size_t most) {
  std::vector<std::string> next;
  for (Lane& lane : lanes_) {
    while (next.size() < most && !lane.turns.empty()) {
      std::string directory = std::move(lane.turns.front());
      lane.turns.pop_front();
      const auto files = lane.files.find(directory);
      all_.erase(files->second.front());
      next.push_back(std::move(files->second.front()));
      files->second.pop_front();
      if (files->second.empty()) {
        lane.files.erase(files);
      } else {
        lane.turns.push_back(std::move(directory));
      }
    }
  }
  return next;
}

}  // namespace caisson::supervise
