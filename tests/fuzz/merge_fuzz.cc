// Three texts (parted by 0xFF bytes) and their merge: the laws of a merge hold for every text and budget, and each line
// of a result is a line of one of the three.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string_view>

#include "session/changes/line_merge.h"

namespace {

using caisson::session::DiffBudget;
using caisson::session::mergeLines;
using caisson::session::splitLines;

void require(bool holds) {
  if (!holds) std::abort();
}

std::string_view takePart(std::string_view& text) {
  const std::size_t end = std::min(text.find('\xFF'), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

void check(std::string_view base, std::string_view ours, std::string_view theirs, std::uint64_t steps) {
  const auto merged = [&](std::string_view a, std::string_view b) {
    DiffBudget budget{.steps = steps};
    return mergeLines(base, a, b, budget);
  };
  require(merged(ours, base) == ours);
  require(merged(base, theirs) == theirs);
  require(merged(ours, ours) == ours);
  const auto both = merged(ours, theirs);
  if (!both) return;
  std::set<std::string_view> known;
  for (const std::string_view text : {base, ours, theirs}) {
    for (const std::string_view line : splitLines(text)) known.insert(line);
  }
  for (const std::string_view line : splitLines(*both)) require(known.contains(line));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view base = takePart(text), ours = takePart(text), theirs = takePart(text);
  for (const std::uint64_t steps : {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{1'000'000}}) {
    check(base, ours, theirs, steps);
  }
  return 0;
}
