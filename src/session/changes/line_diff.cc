// Myers' algorithm ("An O(ND) Difference Algorithm and Its Variations", 1986), the linear-space form: a search from
// both ends finds a point of an optimal path, which splits the region in two. A region whose search costs too much is
// split at the point that got furthest.
#include "session/changes/line_diff.h"

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace caisson::session {
namespace {

using Id = std::uint32_t;

constexpr std::uint64_t kMaxStepsPerText = 50'000'000;
constexpr std::ptrdiff_t kMaxCost = 256;  // edits per search before the region is split where it got furthest

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

struct Seed {
  std::uint64_t words[2] = {0x9E3779B97F4A7C15, 0xD1B54A32D192ED03};
  Seed() {
    (void)!::getrandom(words, sizeof(words), GRND_NONBLOCK);
    words[1] |= 1;
  }
};

/// Gives equal lines equal numbers.
class LineTable {
 public:
  explicit LineTable(std::size_t lines) {
    std::size_t slots = 16;
    while (slots < lines * 2) slots *= 2;
    slots_.assign(slots, kFree);
  }

  Id idOf(std::string_view line) {
    const std::uint64_t hash = hashLine(line);
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
      const Id id = slots_[at];
      if (id == kFree) {
        slots_[at] = static_cast<Id>(lines_.size());
        lines_.push_back({hash, line});
        return slots_[at];
      }
      if (lines_[id].hash == hash && lines_[id].text == line) return id;
    }
  }
  [[nodiscard]] std::size_t size() const { return lines_.size(); }

 private:
  static constexpr Id kFree = std::numeric_limits<Id>::max();
  struct Line {
    std::uint64_t hash;
    std::string_view text;
  };
  std::vector<Id> slots_;
  std::vector<Line> lines_;
};

/// One text during the search: the lines that the other text has as well, and which lines of all are changed.
struct Side {
  std::vector<Id> ids;               // of the lines that take part
  std::vector<std::uint32_t> lines;  // their line numbers
  std::vector<bool> changed;         // by line number
};

Side sideOf(std::span<const Id> all, const std::vector<bool>& in_other, std::size_t begin, std::size_t end) {
  Side side;
  side.changed.assign(all.size(), false);
  for (std::size_t line = begin; line < end; ++line) {
    if (in_other[all[line]]) {
      side.ids.push_back(all[line]);
      side.lines.push_back(static_cast<std::uint32_t>(line));
    } else {
      side.changed[line] = true;
    }
  }
  return side;
}

class Search {
 public:
  Search(Side& before, Side& after, std::uint64_t steps) : a_(before), b_(after), steps_(steps) {
    const std::size_t diagonals = a_.ids.size() + b_.ids.size() + 3;
    forward_.resize(diagonals);
    backward_.resize(diagonals);
    origin_ = static_cast<std::ptrdiff_t>(b_.ids.size()) + 1;
  }

  void run() {
    pending_.push_back({0, size(a_), 0, size(b_)});
    while (!pending_.empty()) {
      Box box = pending_.back();
      pending_.pop_back();
      divide(box);
    }
  }
  [[nodiscard]] std::uint64_t stepsLeft() const { return steps_; }

 private:
  using Index = std::ptrdiff_t;
  struct Box {
    Index a0, a1, b0, b1;
  };
  struct Point {
    Index a = 0, b = 0;
  };

  static Index size(const Side& side) { return static_cast<Index>(side.ids.size()); }
  [[nodiscard]] bool same(Index a, Index b) const {
    return a_.ids[static_cast<std::size_t>(a)] == b_.ids[static_cast<std::size_t>(b)];
  }
  Index& forward(Index diagonal) { return forward_[static_cast<std::size_t>(diagonal + origin_)]; }
  Index& backward(Index diagonal) { return backward_[static_cast<std::size_t>(diagonal + origin_)]; }

  static void mark(Side& side, Index begin, Index end) {
    for (Index at = begin; at < end; ++at) side.changed[side.lines[static_cast<std::size_t>(at)]] = true;
  }
  void markAll(const Box& box) {
    mark(a_, box.a0, box.a1);
    mark(b_, box.b0, box.b1);
  }
  void spend(Index count) { steps_ -= std::min(steps_, static_cast<std::uint64_t>(count)); }

  void divide(Box box) {
    const Index begin = box.a0, end = box.a1;
    while (box.a0 < box.a1 && box.b0 < box.b1 && same(box.a0, box.b0)) ++box.a0, ++box.b0;
    while (box.a0 < box.a1 && box.b0 < box.b1 && same(box.a1 - 1, box.b1 - 1)) --box.a1, --box.b1;
    spend(box.a0 - begin + end - box.a1 + 1);
    if (box.a0 == box.a1 || box.b0 == box.b1 || steps_ == 0) return markAll(box);
    const Point found = findSplit(box);
    // Any point of the box gives a correct result; only a corner would make no progress.
    const Point split{std::clamp(found.a, box.a0, box.a1), std::clamp(found.b, box.b0, box.b1)};
    const bool at_begin = split.a <= box.a0 && split.b <= box.b0;
    const bool at_end = split.a >= box.a1 && split.b >= box.b1;
    if (at_begin || at_end) return markAll(box);
    pending_.push_back({box.a0, split.a, box.b0, split.b});
    pending_.push_back({split.a, box.a1, split.b, box.b1});
  }

  /// A point between two parts of the box that can be compared on their own.
  Point findSplit(const Box& box) {
    const Index lowest = box.a0 - box.b1, highest = box.a1 - box.b0;
    const Index start = box.a0 - box.b0, goal = box.a1 - box.b1;
    const bool odd = ((start - goal) & 1) != 0;
    constexpr Index kNone = std::numeric_limits<Index>::max();
    Index forward_low = start, forward_high = start, backward_low = goal, backward_high = goal;
    forward(start) = box.a0;
    backward(goal) = box.a1;
    for (Index cost = 1;; ++cost) {
      forward_low > lowest ? static_cast<void>(forward(--forward_low - 1) = -1) : static_cast<void>(++forward_low);
      forward_high < highest ? static_cast<void>(forward(++forward_high + 1) = -1) : static_cast<void>(--forward_high);
      for (Index k = forward_high; k >= forward_low; k -= 2) {
        const Index from = std::max(forward(k - 1) + 1, forward(k + 1));
        Index a = from;
        while (a < box.a1 && a - k < box.b1 && same(a, a - k)) ++a;
        forward(k) = a;
        spend(a - from + 1);
        if (odd && k >= backward_low && k <= backward_high && backward(k) <= a) return {a, a - k};
      }
      backward_low > lowest ? static_cast<void>(backward(--backward_low - 1) = kNone)
                            : static_cast<void>(++backward_low);
      backward_high < highest ? static_cast<void>(backward(++backward_high + 1) = kNone)
                              : static_cast<void>(--backward_high);
      for (Index k = backward_high; k >= backward_low; k -= 2) {
        const Index from = std::min(backward(k - 1), backward(k + 1) - 1);
        Index a = from;
        while (a > box.a0 && a - k > box.b0 && same(a - 1, a - k - 1)) --a;
        backward(k) = a;
        spend(from - a + 1);
        if (!odd && k >= forward_low && k <= forward_high && a <= forward(k)) return {a, a - k};
      }
      if (cost >= kMaxCost || steps_ == 0) {
        return furthest(box, forward_low, forward_high, backward_low, backward_high);
      }
    }
  }

  /// Where the search got furthest from its side, forward or backward.
  Point furthest(const Box& box, Index forward_low, Index forward_high, Index backward_low, Index backward_high) {
    Point best_forward{box.a0, box.b0}, best_backward{box.a1, box.b1};
    for (Index k = forward_low; k <= forward_high; k += 2) {
      const Index a = std::min({forward(k), box.a1, box.b1 + k});
      if (a < box.a0 || a - k < box.b0) continue;
      if (2 * a - k > best_forward.a + best_forward.b) best_forward = {a, a - k};
    }
    for (Index k = backward_low; k <= backward_high; k += 2) {
      const Index a = std::max({backward(k), box.a0, box.b0 + k});
      if (a > box.a1 || a - k > box.b1) continue;
      if (2 * a - k < best_backward.a + best_backward.b) best_backward = {a, a - k};
    }
    const Index gained = best_forward.a + best_forward.b - box.a0 - box.b0;
    const Index left = box.a1 + box.b1 - best_backward.a - best_backward.b;
    return gained >= left ? best_forward : best_backward;
  }

  Side& a_;
  Side& b_;
  std::uint64_t steps_;
  Index origin_ = 0;
  std::vector<Index> forward_, backward_;  // furthest old line reached, by diagonal (old minus new line)
  std::vector<Box> pending_;
};

std::vector<LineEdit> editsOf(const std::vector<bool>& before, const std::vector<bool>& after) {
  std::vector<LineEdit> edits;
  std::size_t a = 0, b = 0;
  while (a < before.size() || b < after.size()) {
    LineEdit edit{a, 0, b, 0};
    while (a < before.size() && before[a]) ++a, ++edit.old_count;
    while (b < after.size() && after[b]) ++b, ++edit.new_count;
    if (edit.old_count + edit.new_count > 0) edits.push_back(edit);
    while (a < before.size() && b < after.size() && !before[a] && !after[b]) ++a, ++b;
  }
  return edits;
}

/// Moves an insertion or deletion down as far as its lines repeat: a new function then begins at its own first line.
void slideDown(std::vector<LineEdit>& edits, std::span<const Id> before, std::span<const Id> after) {
  for (std::size_t i = 0; i < edits.size(); ++i) {
    LineEdit& edit = edits[i];
    if ((edit.old_count == 0) == (edit.new_count == 0)) continue;
    const std::size_t limit = i + 1 < edits.size() ? edits[i + 1].old_begin : before.size();
    const std::span<const Id> lines = edit.old_count == 0 ? after : before;
    std::size_t& begin = edit.old_count == 0 ? edit.new_begin : edit.old_begin;
    const std::size_t count = edit.old_count + edit.new_count;
    // One common line stays before the next edit.
    while (edit.old_begin + edit.old_count + 1 < limit && lines[begin] == lines[begin + count]) {
      ++edit.old_begin;
      ++edit.new_begin;
    }
  }
}

}  // namespace

std::uint64_t hashLine(std::string_view line) {
  static const Seed seed;
  std::uint64_t hash = seed.words[0] ^ line.size();
  while (line.size() >= 8) {
    std::uint64_t word;
    std::memcpy(&word, line.data(), 8);
    hash = mix(hash ^ word, seed.words[1]);
    line.remove_prefix(8);
  }
  std::uint64_t word = 0;
  if (!line.empty()) std::memcpy(&word, line.data(), line.size());
  return mix(mix(hash ^ word, seed.words[1]), seed.words[0] | 1);
}

std::vector<std::string_view> splitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const void* newline = std::memchr(text.data(), '\n', text.size());
    const std::size_t length = newline == nullptr
                                   ? text.size()
                                   : static_cast<std::size_t>(static_cast<const char*>(newline) - text.data()) + 1;
    lines.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

std::vector<LineEdit> diffLines(std::span<const std::string_view> before, std::span<const std::string_view> after,
                                DiffBudget& budget) {
  LineTable table(before.size() + after.size());
  std::vector<Id> old_ids, new_ids;
  old_ids.reserve(before.size());
  new_ids.reserve(after.size());
  for (const std::string_view line : before) old_ids.push_back(table.idOf(line));
  for (const std::string_view line : after) new_ids.push_back(table.idOf(line));

  std::size_t head = 0, tail = 0;
  const std::size_t shorter = std::min(before.size(), after.size());
  while (head < shorter && old_ids[head] == new_ids[head]) ++head;
  while (tail < shorter - head && old_ids[before.size() - 1 - tail] == new_ids[after.size() - 1 - tail]) ++tail;

  std::vector<bool> in_old(table.size(), false), in_new(table.size(), false);
  for (std::size_t i = head; i < before.size() - tail; ++i) in_old[old_ids[i]] = true;
  for (std::size_t i = head; i < after.size() - tail; ++i) in_new[new_ids[i]] = true;
  Side a = sideOf(old_ids, in_new, head, before.size() - tail);
  Side b = sideOf(new_ids, in_old, head, after.size() - tail);

  const std::uint64_t allowed = std::min(kMaxStepsPerText, budget.steps);
  Search search(a, b, allowed);
  search.run();
  budget.steps -= allowed - search.stepsLeft();
  std::vector<LineEdit> edits = editsOf(a.changed, b.changed);
  slideDown(edits, old_ids, new_ids);
  return edits;
}

}  // namespace caisson::session
