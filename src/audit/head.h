// The head: a small file that says where the chain ends and which key comes next. Every writer locks it, so writers of
// several processes take turns; the lock is the kernel's and dies with its holder.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "audit/chain.h"

namespace caisson::audit {

struct Head {
  Link link;
  std::uint64_t writes = 0;       ///< of this head: the larger one is the newer one
  std::uint32_t chain = 1;        ///< number of the file this chain began with; its first key is in key-<chain>
  std::uint32_t file = 1;         ///< number of the file that is written to
  std::uint32_t oldest = 1;       ///< number of the oldest file that was not pruned
  std::uint64_t end = 0;          ///< of the last line, in that file
  std::int64_t last_time_ns = 0;  ///< of the last line
};

/// Two slots, written in turn: one that was torn by a crash is seen by its checksum, and the other is one write old.
inline constexpr std::size_t kSlotBytes = 512;
inline constexpr std::size_t kHeadBytes = 2 * kSlotBytes;
using HeadBytes = std::array<std::uint8_t, kHeadBytes>;

/// Which slot this head goes to.
inline std::size_t slotOf(const Head& head) { return head.writes % 2; }
std::array<std::uint8_t, kSlotBytes> encode(const Head& head);
/// The newer of the valid slots. Allocates nothing.
std::optional<Head> decode(const HeadBytes& bytes);

/// Name of the log file with this number: "00000001.jsonl". At most kNameBytes with the NUL.
inline constexpr std::size_t kNameBytes = 20;
void writeLogName(std::uint32_t number, char* to);
std::string logName(std::uint32_t number);
std::string keyName(std::uint32_t chain);
/// The number in a log file's name, or 0 if it is none.
std::uint32_t numberOfLog(std::string_view name);
/// The same for the name of a key.
std::uint32_t numberOfKey(std::string_view name);
inline constexpr std::uint32_t kLastNumber = 99'999'999;  ///< that a name has room for

inline constexpr const char* kHeadName = "head";
inline constexpr const char* kSyncName = "sync";

}  // namespace caisson::audit
