// Suggestions for mistyped keys and choices.
#include <algorithm>
#include <utility>
#include <vector>

#include "policy/fields.h"

namespace caisson::policy {

namespace {

/// Longer words are not typing mistakes; this also bounds the work that a hostile key can cause.
constexpr std::size_t kMaxWord = 80;

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
std::size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last, last, row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last = std::move(last);
    last = std::move(row);
    row.assign(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string_view lastPart(std::string_view key) { return key.substr(key.rfind('.') + 1); }

struct Best {
  std::string_view name;
  std::size_t distance;
};

void consider(Best& best, std::string_view candidate, std::string_view shown, std::string_view word) {
  const std::size_t distance = editDistance(word, candidate);
  if (distance < best.distance) best = {shown, distance};
}

/// The distance from which on a name is too different to suggest: above a third of the word, and above 2 mistakes in
/// up to 11 letters.
std::size_t tolerance(std::string_view word) {
  const std::size_t third = std::max<std::size_t>(1, word.size() / 3);
  return std::min(third, std::max<std::size_t>(2, word.size() / 4)) + 1;
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> names) {
  if (word.size() > kMaxWord) return {};
  Best best{{}, std::min(tolerance(word), std::max<std::size_t>(word.size(), 1))};
  for (const std::string_view name : names) consider(best, name, name, word);
  return best.name;
}

std::string_view nearestKey(std::string_view key) {
  if (key.size() > kMaxWord) return {};
  Best best{{}, tolerance(key)};
  for (const Field& field : fields()) consider(best, field.key, field.key, key);
  if (!best.name.empty()) return best.name;
  // The right name in the wrong table: `memory` at the top level, `process.open_files`.
  const std::string_view last = lastPart(key);
  best = {{}, tolerance(last)};
  for (const Field& field : fields()) consider(best, lastPart(field.key), field.key, last);
  return last.size() > best.distance ? best.name : std::string_view{};
}

}  // namespace caisson::policy
