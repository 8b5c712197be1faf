// Two texts (parted by the first 0xFF byte) and the patch between them: the edits must turn one into the other,
// whatever the budget, and the patch's own counts must agree with its lines.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "session/changes/git_patch.h"
#include "session/changes/renames.h"

namespace {

using caisson::session::DiffBudget;
using caisson::session::LineEdit;

void require(bool holds) {
  if (!holds) std::abort();
}

void checkEdits(std::string_view before, std::string_view after, std::uint64_t steps) {
  DiffBudget budget{.steps = steps};
  const auto a = caisson::session::splitLines(before), b = caisson::session::splitLines(after);
  std::string made;
  std::size_t at = 0, in_new = 0;
  for (const LineEdit& edit : caisson::session::diffLines(a, b, budget)) {
    require(edit.old_begin >= at && edit.old_begin + edit.old_count <= a.size());
    require(edit.new_begin + edit.new_count <= b.size());
    for (; at < edit.old_begin; ++at, ++in_new) made += a[at];
    require(in_new == edit.new_begin);
    at += edit.old_count;
    for (std::size_t i = 0; i < edit.new_count; ++i, ++in_new) made += b[edit.new_begin + i];
  }
  for (; at < a.size(); ++at) made += a[at];
  require(made == after);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using Mode = caisson::session::PatchSide::Mode;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(text.find('\xFF'), size);
  const std::string_view before = text.substr(0, end);
  const std::string_view after = end < size ? text.substr(end + 1) : std::string_view();
  for (const std::uint64_t steps : {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{1'000'000}}) {
    checkEdits(before, after, steps);
  }
  DiffBudget budget;
  const auto patch =
      caisson::session::makePatch({Mode::file, before.substr(0, 40), before}, {Mode::executable, "new", after}, 50,
                                  {.context_lines = size % 5, .binary_content = true}, budget);
  require(patch.text.starts_with("diff --git "));
  const std::string quoted = caisson::session::quotePath("a/", before);
  for (const char letter : quoted) require(letter >= 0x20 && letter < 0x7F);
  (void)caisson::session::findRenames({{0, before.size()}}, {{1, after.size()}},
                                      [&](std::size_t item) { return std::string(item == 0 ? before : after); });
  return 0;
}
