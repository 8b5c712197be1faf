// The head: a small file that records where the chain ends and the next key. Every writer locks it, so processes write
// in turn; the kernel releases the lock when its holder dies.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "audit/chain.h"

namespace caisson::audit {

struct Head {
  Link link;                      ///< of the last line
  std::uint64_t writes = 0;       ///< of the head; the larger count is newer
  std::uint32_t chain = 1;        ///< number of the first file of this chain; its first key is in key-<chain>
  std::uint32_t file = 1;         ///< number of the current file
  std::uint32_t oldest = 1;       ///< number of the oldest file not pruned
  std::uint64_t end = 0;          ///< of the last line, in that file
  std::int64_t last_time_ns = 0;  ///< of the last line
};

/// Two slots, written alternately: a checksum detects a slot torn by a crash, and the other one is one write older.
inline constexpr std::size_t kSlotBytes = 512;
inline constexpr std::size_t kHeadBytes = 2 * kSlotBytes;
using HeadBytes = std::array<std::uint8_t, kHeadBytes>;

/// The slot for this head.
inline std::size_t slotOf(const Head& head) { return head.writes % 2; }
/// The content of the head's slot, with its checksum.
std::array<std::uint8_t, kSlotBytes> encode(const Head& head);
/// The newer of the valid slots; nullopt if none is valid. Does not allocate.
std::optional<Head> decode(const HeadBytes& bytes);

/// The format of a head that decode() does not accept, if another version of caisson wrote it; 0: the head is damaged.
int otherFormat(const HeadBytes& bytes);
inline constexpr int kHeadFormat = 1;

/// Upper bound of a log file's name ("00000001.jsonl") with its NUL.
inline constexpr std::size_t kNameBytes = 20;
/// Writes the name of the log file with this number to `to`, with room for kNameBytes. Does not allocate.
void writeLogName(std::uint32_t number, char* to);
std::string logName(std::uint32_t number);  ///< "00000001.jsonl"
std::string keyName(std::uint32_t chain);   ///< "key-00000001"
/// The number in a log file's name, or 0 if it is not one.
std::uint32_t numberOfLog(std::string_view name);
/// Same, for a key file.
std::uint32_t numberOfKey(std::string_view name);
inline constexpr std::uint32_t kLastNumber = 99'999'999;  ///< largest that fits the name

inline constexpr const char* kHeadName = "head";  ///< locked by the current writer
inline constexpr const char* kSyncName = "sync";  ///< locked by the running syncer (syncer.h)

}  // namespace caisson::audit
