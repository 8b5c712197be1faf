// What an archive contained that the store did not take over as it was, for the user.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::image {

/// Entries that were changed or left out. One line each is kept, up to a limit; all are counted.
class UnpackReport {
 public:
  struct Note {
    std::string what;  ///< "setuid bit removed"
    std::string name;  ///< of the entry
  };

  void add(std::string_view what, std::string_view name) {
    ++counts_[std::string(what)];
    if (notes_.size() < kMaxNotes) notes_.push_back({std::string(what), std::string(name)});
  }
  void merge(const UnpackReport& other) {
    for (const auto& [what, count] : other.counts_) counts_[what] += count;
    for (const Note& note : other.notes_)
      if (notes_.size() < kMaxNotes) notes_.push_back(note);
  }
  [[nodiscard]] const std::vector<Note>& notes() const { return notes_; }
  [[nodiscard]] const std::map<std::string, std::uint64_t>& counts() const { return counts_; }

  /// One JSON object per line: {"what":...,"name":...}.
  [[nodiscard]] std::string written() const;

 private:
  static constexpr std::size_t kMaxNotes = 10'000;
  std::vector<Note> notes_;
  std::map<std::string, std::uint64_t> counts_;
};

}  // namespace caisson::image
