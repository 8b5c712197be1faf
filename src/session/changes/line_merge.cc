#include "session/changes/line_merge.h"

#include <algorithm>
#include <span>
#include <vector>

namespace caisson::session {
namespace {

using Lines = std::vector<std::string_view>;

/// One side of the merge: its lines, its edits of the base, and how far it was read.
struct MergeSide {
  Lines lines;
  std::vector<LineEdit> edits;
  std::size_t next = 0;  // edit
  std::size_t at = 0;    // line

  [[nodiscard]] bool done() const { return next == edits.size(); }
  [[nodiscard]] std::size_t begin() const { return edits[next].old_begin; }
  [[nodiscard]] std::size_t end() const { return edits[next].old_begin + edits[next].old_count; }
  /// Goes past the next edit: `at` becomes the first line of this side after it.
  void pass() {
    at = edits[next].new_begin + edits[next].new_count;
    ++next;
  }
};

/// The part of the base that edits of the two sides change together: from the first of them to the last that touches.
struct Region {
  std::size_t begin = 0, end = 0;
  bool ours = false, theirs = false;
};

class Merge {
 public:
  Merge(std::string_view base, std::string_view ours, std::string_view theirs, DiffBudget& budget)
      : base_(splitLines(base)), ours_{splitLines(ours), {}}, theirs_{splitLines(theirs), {}} {
    ours_.edits = diffLines(base_, ours_.lines, budget);
    theirs_.edits = diffLines(base_, theirs_.lines, budget);
  }

  std::optional<std::string> run() {
    while (!ours_.done() || !theirs_.done()) {
      const std::size_t first =
          std::min(ours_.done() ? base_.size() : ours_.begin(), theirs_.done() ? base_.size() : theirs_.begin());
      copyBase(first);
      if (!mergeRegion()) return std::nullopt;
    }
    copyBase(base_.size());
    // A last line without a newline can only stay the last one.
    for (std::size_t i = 0; i + 1 < merged_.size(); ++i) {
      if (!merged_[i].ends_with('\n')) return std::nullopt;
    }
    std::string text;
    for (const std::string_view line : merged_) text += line;
    return text;
  }

 private:
  void append(std::span<const std::string_view> lines) { merged_.insert(merged_.end(), lines.begin(), lines.end()); }

  /// Unchanged lines up to one of the base.
  void copyBase(std::size_t end) {
    append(std::span(base_).subspan(at_, end - at_));
    ours_.at += end - at_;
    theirs_.at += end - at_;
    at_ = end;
  }

  /// Adds the next edit of a side to the region if it touches it.
  static bool extend(Region& region, MergeSide& side, bool& takes_part) {
    if (side.done() || side.begin() > region.end) return false;
    region.end = std::max(region.end, side.end());
    side.pass();
    takes_part = true;
    return true;
  }

  bool mergeRegion() {
    Region region{at_, at_};
    const std::size_t ours_begin = ours_.at, theirs_begin = theirs_.at;
    while (extend(region, ours_, region.ours) || extend(region, theirs_, region.theirs)) {
    }
    // Base lines after a side's last edit in the region are in that side as they are.
    const auto linesOf = [&](MergeSide& side, std::size_t begin, bool takes_part) {
      const std::size_t last =
          takes_part ? side.edits[side.next - 1].old_begin + side.edits[side.next - 1].old_count : region.begin;
      side.at += region.end - last;
      return std::span(side.lines).subspan(begin, side.at - begin);
    };
    const auto ours = linesOf(ours_, ours_begin, region.ours);
    const auto theirs = linesOf(theirs_, theirs_begin, region.theirs);
    at_ = region.end;
    if (region.ours && region.theirs && !std::ranges::equal(ours, theirs)) return false;
    append(region.ours ? ours : theirs);
    return true;
  }

  Lines base_;
  MergeSide ours_, theirs_;
  std::size_t at_ = 0;  // line of the base
  Lines merged_;
};

}  // namespace

std::optional<std::string> mergeLines(std::string_view base, std::string_view ours, std::string_view theirs,
                                      DiffBudget& budget) {
  // When the budget is used up, two searches may describe the same change differently, which would look like a
  // conflict.
  if (ours == theirs || theirs == base) return std::string(ours);
  if (ours == base) return std::string(theirs);
  return Merge(base, ours, theirs, budget).run();
}

}  // namespace caisson::session
