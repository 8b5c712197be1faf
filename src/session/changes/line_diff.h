// Line differences between two texts, bounded in time and memory whatever the texts are.
//
// Both texts may come from a payload. Line hashes are seeded per process so that colliding lines cannot be prepared,
// and the search gives up minimality, never correctness, when its step budget is used up.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace caisson::session {

/// Lines [old_begin, old_begin + old_count) of the old text are replaced by those of the new one.
struct LineEdit {
  std::size_t old_begin = 0, old_count = 0;
  std::size_t new_begin = 0, new_count = 0;
};

/// Steps that all searches of one diff may take together. Without any left, a changed region is replaced as a whole.
struct DiffBudget {
  std::uint64_t steps = 2'000'000'000;
};

/// Each line with its newline; the last may have none.
std::vector<std::string_view> splitLines(std::string_view text);

/// The edits that turn `before` into `after`, in order, with at least one common line between two of them.
std::vector<LineEdit> diffLines(std::span<const std::string_view> before, std::span<const std::string_view> after,
                                DiffBudget& budget);

/// A hash of one line that differs between processes.
std::uint64_t hashLine(std::string_view line);

}  // namespace caisson::session
