// Entries of `filesystem.denied`: which names they mean, and what they mean for another workspace. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace caisson::policy {

/// Whether a part of an entry means a name. Each part is a name and a pattern: `[id].tsx` denies the file of that name,
/// and `i.tsx`. A `*` also matches a dot at the beginning.
bool deniesName(const std::string& part, const std::string& name);

/// A part that means any number of directories, also none: `**/*.dump`.
inline constexpr std::string_view kAnyDirectories = "**";

/// An entry, read along a path: name by name it keeps the parts that the next name may match. Time and memory are at
/// most linear in the product of both lengths, however many `**` the entry has.
class DeniedEntry {
 public:
  /// Parts by their number; the number after the last part is the end of the entry.
  using Positions = std::vector<bool>;

  explicit DeniedEntry(std::string_view entry);

  [[nodiscard]] Positions start() const;
  /// What is left to match in the directory or file `name`.
  [[nodiscard]] Positions after(const Positions& positions, std::string_view name) const;
  /// Whether the entry means what these positions were reached with.
  [[nodiscard]] bool denies(const Positions& positions) const { return positions.back(); }
  /// Whether the entry can mean something below that.
  [[nodiscard]] bool leadsOn(const Positions& positions) const;
  /// The only names that can match next, empty if any name may: then the directory has to be read.
  [[nodiscard]] std::vector<std::string> onlyNames(const Positions& positions) const;
  /// What is left of the entry there, written as entries; "" is the end. At most two for each name that was read, and
  /// one more.
  [[nodiscard]] std::vector<std::string> rests(const Positions& positions) const;

 private:
  /// `**` also means no directory: the part after it may match where `**` stands.
  [[nodiscard]] Positions withoutDirectories(Positions positions) const;

  std::vector<std::string> parts_;
};

/// Whether an entry means exactly this path, part by part. Both are relative to the same directory.
bool deniesPath(std::string_view entry, std::string_view path);

struct DeniedElsewhere {
  std::vector<std::string> entries;  ///< what they deny below the other workspace, as entries for it
  std::string whole;                 ///< not empty: the entry that denies the workspace itself or a directory above it
};

/// What entries below /workspace that were written for the workspace `top` deny if the workspace is `workspace`,
/// another directory, below `top` or above it. Both are canonical paths of the host.
DeniedElsewhere deniedElsewhere(const std::vector<std::string>& entries, std::string_view top,
                                std::string_view workspace);

}  // namespace caisson::policy
