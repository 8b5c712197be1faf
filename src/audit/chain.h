// One line of the log: how it is written, chained and taken apart again. Pure.
//
//   {"seq":7,"time":"...","event":"...","severity":"...","sandbox":"...","pid":1,"data":{...},"hash":"H","mac":"M"}
//
// H is SHA-256 over the previous line's H (as bytes) and everything on this line before `,"hash"`. M is a keyed digest
// of H with a key that is used for this one line and then replaced by its own digest: who reads the current key can
// neither forge nor re-forge a line that was written before.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "audit/event.h"
#include "base/sha256.h"

namespace caisson::audit {

/// Where a chain stands: what the next line builds on.
struct Link {
  std::uint64_t seq = 0;  ///< of the last line
  Digest hash{};          ///< of the last line; zero before the first
  Digest key{};           ///< for the next line
};

inline constexpr std::size_t kHashText = 64;
/// `,"hash":"` H `","mac":"` M `"}` and the line end.
inline constexpr std::size_t kSealBytes = 9 + kHashText + 9 + kHashText + 3;
/// A longer line is nobody's: the writer never makes one, the reader stops there.
inline constexpr std::size_t kLongestLine = 64 * 1024;

Digest nextKey(const Digest& key);
Digest macOf(const Digest& key, const Digest& hash);

/// Appends the event as one sealed line and moves `link` on. `time_ns` is since the epoch.
void appendLine(std::string& out, Link& link, const Event& event, std::int64_t time_ns, int pid);

/// A line taken apart at its fixed places; the body is not parsed.
struct SealedLine {
  std::string_view body;  ///< what the hash covers
  Digest hash{}, mac{};
};

/// `line` with its line end. False if it has not the shape that appendLine gives.
bool takeApart(std::string_view line, SealedLine& sealed);

/// Whether the line's hash follows from `previous`.
bool hashFollows(const SealedLine& line, const Digest& previous);

/// Whether this very line comes next after `link`, hash and MAC; then `link` is moved on.
bool follows(std::string_view line, Link& link);

/// The number at the start of a body (`{"seq":7,`), or 0.
std::uint64_t seqOf(std::string_view body);

/// "2026-11-15T05:11:04.123456Z"
std::string timeText(std::int64_t time_ns);

}  // namespace caisson::audit
