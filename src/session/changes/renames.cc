#include "session/changes/renames.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/sha256.h"
#include "session/changes/git_patch.h"
#include "session/changes/line_diff.h"

namespace caisson::session {
namespace {

constexpr std::uint64_t kMaxExactBytes = 16U << 20;
constexpr std::uint64_t kMaxSimilarBytes = 256U << 10;
constexpr std::size_t kMaxSimilar = 200;  // candidates on each side
constexpr std::size_t kMaxSimilarLines = 10'000;
constexpr unsigned kLeastSimilarity = 50;

/// The lines of a text by hash, sorted, with their length.
struct FileLines {
  std::size_t item = 0;
  std::uint64_t size = 0;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> hashes;
};

std::optional<FileLines> linesOf(const RenameCandidate& candidate, const ReadCandidate& read) {
  if (candidate.size == 0 || candidate.size > kMaxSimilarBytes) return std::nullopt;
  const auto content = read(candidate.item);
  if (!content || isBinary(*content)) return std::nullopt;
  FileLines lines{candidate.item, content->size(), {}};
  const auto texts = splitLines(*content);
  if (texts.size() > kMaxSimilarLines) return std::nullopt;
  for (const std::string_view line : texts) {
    lines.hashes.emplace_back(hashLine(line), static_cast<std::uint32_t>(line.size()));
  }
  std::sort(lines.hashes.begin(), lines.hashes.end());
  return lines;
}

Digest digestOf(std::string_view content) { return Sha256().add(content).finish(); }

unsigned similarity(const FileLines& a, const FileLines& b) {
  const std::uint64_t larger = std::max(a.size, b.size), smaller = std::min(a.size, b.size);
  if (larger == 0 || smaller * 100 / larger < kLeastSimilarity) return 0;
  std::uint64_t common = 0;
  auto left = a.hashes.begin(), right = b.hashes.begin();
  while (left != a.hashes.end() && right != b.hashes.end()) {
    if (*left == *right) {
      common += left->second;
      ++left, ++right;
    } else {
      *left < *right ? static_cast<void>(++left) : static_cast<void>(++right);
    }
  }
  return static_cast<unsigned>(common * 100 / larger);
}

class Finder {
 public:
  Finder(const std::vector<RenameCandidate>& deleted, const std::vector<RenameCandidate>& added,
         const ReadCandidate& read)
      : deleted_(deleted), added_(added), read_(read) {}

  std::vector<Rename> run() {
    if (!deleted_.empty() && !added_.empty()) {
      findExact();
      findSimilar();
    }
    return std::move(found_);
  }

 private:
  void findExact() {
    std::set<std::uint64_t> deleted_sizes, common_sizes;
    for (const RenameCandidate& one : deleted_) deleted_sizes.insert(one.size);
    for (const RenameCandidate& one : added_) {
      if (deleted_sizes.contains(one.size)) common_sizes.insert(one.size);
    }
    // An empty file says nothing about where it came from.
    const auto worth = [&](const RenameCandidate& one) {
      return one.size > 0 && one.size <= kMaxExactBytes && common_sizes.contains(one.size);
    };
    std::multimap<Digest, std::size_t> sources;
    for (const RenameCandidate& one : deleted_) {
      if (!worth(one)) continue;
      if (const auto content = read_(one.item)) sources.emplace(digestOf(*content), one.item);
    }
    for (const RenameCandidate& one : added_) {
      if (sources.empty() || !worth(one)) continue;
      const auto content = read_(one.item);
      const auto source = content ? sources.find(digestOf(*content)) : sources.end();
      if (source == sources.end()) continue;
      add({source->second, one.item, 100});
      sources.erase(source);
    }
  }

  void findSimilar() {
    std::vector<RenameCandidate> sources, targets;
    for (const RenameCandidate& one : deleted_) {
      if (!used_from_.contains(one.item)) sources.push_back(one);
    }
    for (const RenameCandidate& one : added_) {
      if (!used_to_.contains(one.item)) targets.push_back(one);
    }
    if (sources.empty() || targets.empty() || sources.size() > kMaxSimilar || targets.size() > kMaxSimilar) return;
    std::vector<FileLines> from, to;
    for (const RenameCandidate& one : sources) {
      if (auto lines = linesOf(one, read_)) from.push_back(std::move(*lines));
    }
    for (const RenameCandidate& one : targets) {
      if (auto lines = linesOf(one, read_)) to.push_back(std::move(*lines));
    }
    std::vector<Rename> pairs;
    for (const FileLines& target : to) {
      for (const FileLines& source : from) {
        const unsigned percent = similarity(source, target);
        if (percent >= kLeastSimilarity) pairs.push_back({source.item, target.item, std::min(percent, 99U)});
      }
    }
    std::sort(pairs.begin(), pairs.end(), [](const Rename& a, const Rename& b) {
      return std::tie(b.similarity, a.to, a.from) < std::tie(a.similarity, b.to, b.from);
    });
    for (const Rename& pair : pairs) {
      if (!used_from_.contains(pair.from) && !used_to_.contains(pair.to)) add(pair);
    }
  }

  void add(const Rename& rename) {
    used_from_.insert(rename.from);
    used_to_.insert(rename.to);
    found_.push_back(rename);
  }

  const std::vector<RenameCandidate>& deleted_;
  const std::vector<RenameCandidate>& added_;
  const ReadCandidate& read_;
  std::set<std::size_t> used_from_, used_to_;
  std::vector<Rename> found_;
};

}  // namespace

std::vector<Rename> findRenames(const std::vector<RenameCandidate>& deleted, const std::vector<RenameCandidate>& added,
                                const ReadCandidate& read) {
  return Finder(deleted, added, read).run();
}

}  // namespace caisson::session
