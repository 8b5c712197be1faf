// One line of the log: writing, chaining and parsing it. Pure.
//
//   {"seq":7,"time":"...","event":"...","severity":"...","sandbox":"...","pid":1,"data":{...},"hash":"H","mac":"M"}
//
// H is SHA-256 over the previous line's H (as bytes) and everything on this line before `,"hash"`. M is a keyed digest
// of H. Each key is used for one line and then replaced by its digest, so an attacker who reads the current key cannot
// forge or rewrite earlier lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "audit/event.h"
#include "base/sha256.h"

namespace caisson::audit {

/// The state of a chain, on which the next line builds.
struct Link {
  std::uint64_t seq = 0;  ///< of the last line
  Digest hash{};          ///< of the last line; zero before the first
  Digest key{};           ///< for the next line
};

inline constexpr std::size_t kHashText = 64;
/// `,"hash":"` H `","mac":"` M `"}` and the line end.
inline constexpr std::size_t kSealBytes = 9 + kHashText + 9 + kHashText + 3;
/// The writer never exceeds this length, and the reader rejects longer lines.
inline constexpr std::size_t kMaxLine = 64 * 1024;

/// The key for the line after the one sealed with `key`. One-way: an earlier key cannot be computed from a later one.
Digest nextKey(const Digest& key);
/// The MAC of a line with this hash.
Digest macOf(const Digest& key, const Digest& hash);

/// Appends the event as one sealed line and advances `link`. Fields that do not fit into a line are replaced by their
/// size. `time_ns` is since the epoch.
void appendLine(std::string& out, Link& link, const Event& event, std::int64_t time_ns, int pid);

/// A line split at its fixed positions; the body is not parsed.
struct SealedLine {
  std::string_view body;  ///< what the hash covers
  Digest hash{}, mac{};
};

/// `line` includes its line end. False if it does not have the format of appendLine.
bool splitLine(std::string_view line, SealedLine& sealed);

/// Whether the line's hash follows from `previous`.
bool hashFollows(const SealedLine& line, const Digest& previous);

/// Whether the line is the successor of `link`, by hash and MAC; if so, advances `link`.
bool follows(std::string_view line, Link& link);

/// The sequence number at the start of a body (`{"seq":7,`), or 0.
std::uint64_t seqOf(std::string_view body);

/// "2026-11-15T05:11:04.123456Z"
std::string timeText(std::int64_t time_ns);

}  // namespace caisson::audit
