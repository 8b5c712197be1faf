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
    std::string what;    ///< "setuid bit removed"
    std::string name;    ///< of the entry
    std::string detail;  ///< may be empty
  };

  /// `what` is one of few texts, never from the archive: each is counted under its own key.
  void add(std::string_view what, std::string_view name, std::string_view detail = {}) {
    ++counts_[std::string(what)];
    keep(what, name, detail);
  }
  void merge(const UnpackReport& other) {
    for (const auto& [what, count] : other.counts_) counts_[what] += count;
    for (const Note& note : other.notes_) keep(note.what, note.name, note.detail);
  }
  [[nodiscard]] const std::vector<Note>& notes() const { return notes_; }
  [[nodiscard]] const std::map<std::string, std::uint64_t>& counts() const { return counts_; }

  /// One JSON object per line: {"what":...,"name":...}. A detail follows `what` after a colon.
  [[nodiscard]] std::string written() const;

 private:
  static constexpr std::size_t kMaxNotes = 10'000;
  static constexpr std::size_t kMaxNoteBytes = 4U << 20;  // of names and details

  void keep(std::string_view what, std::string_view name, std::string_view detail) {
    const std::size_t size = name.size() + detail.size();
    if (notes_.size() == kMaxNotes || size > kMaxNoteBytes - note_bytes_) return;
    note_bytes_ += size;
    notes_.push_back({std::string(what), std::string(name), std::string(detail)});
  }

  std::vector<Note> notes_;
  std::size_t note_bytes_ = 0;
  std::map<std::string, std::uint64_t> counts_;
};

}  // namespace caisson::image
