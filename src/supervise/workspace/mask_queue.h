// Files that wait for a mask. No directory delays the others, however many names a program makes in it.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace caisson::supervise {

class MaskQueue {
 public:
  /// `written`: the sandbox can make names in its directory; it comes after all others.
  void push(const std::string& path, bool written);
  [[nodiscard]] bool contains(const std::string& path) const { return all_.contains(path); }
  [[nodiscard]] bool empty() const { return all_.empty(); }
  [[nodiscard]] const std::set<std::string>& all() const { return all_; }
  /// Whether a file waits in a directory that the sandbox cannot write.
  [[nodiscard]] bool hasFirst() const { return !lanes_[0].turns.empty(); }
  /// The next files, at most so many: directories take turns, new ones first.
  std::vector<std::string> pop(std::size_t most);

 private:
  struct Lane {
    std::map<std::string, std::deque<std::string>> files;  ///< by directory
    std::deque<std::string> turns;
  };
  std::array<Lane, 2> lanes_;
  std::set<std::string> all_;
};

}  // namespace caisson::supervise
