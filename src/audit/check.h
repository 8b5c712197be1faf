// Verifies the whole log: every line's hash and MAC, the order of lines and files, and the end recorded in the head.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "audit/chain.h"
#include "audit/head.h"
#include "base/error.h"
#include "sys/file_lock.h"

namespace caisson::audit {

/// One sign of damage or manipulation.
struct Finding {
  std::string file;
  std::uint64_t line = 0;  ///< from 1; 0: the whole file
  std::string what;
};

struct CheckReport {
  std::uint64_t files = 0, lines = 0;
  std::uint64_t first_seq = 0, last_seq = 0;  ///< of the lines that were checked; 0: none
  std::string head;                ///< "SEQ:HASH" of the last line: store it elsewhere and pass it as the anchor later
  bool macs_checked = true;        ///< the key of the last chain is known; false: not all MACs were checked
  std::vector<Finding> findings;   ///< about kMaxFindings at most; empty: the log is intact
  std::vector<std::string> notes;  ///< remarks about an intact log
  [[nodiscard]] bool whole() const { return findings.empty(); }
};

inline constexpr std::size_t kMaxFindings = 100;

struct CheckOptions {
  std::string anchor;               ///< "SEQ:HASH" of a line that must be in the log, or empty
  std::optional<Digest> first_key;  ///< of the oldest chain, if its key file was moved away
  std::chrono::milliseconds lock_timeout = sys::kLockTimeout;
};

/// Verifies the log in `directory`; waits for a writer that holds it. Damage is in the report; an error only for an
/// invalid anchor, a directory that cannot be read, or a log that another process holds for longer than the timeout.
/// Creates a missing directory.
Result<CheckReport> checkLog(const std::string& directory, const CheckOptions& options = {});

/// Checks the lines of a chain, fed in order. Pure; used by checkLog and the fuzzer.
class ChainChecker {
 public:
  /// Deriving a line's key costs one digest per earlier line; `most_steps` bounds the cost of a forged sequence number.
  explicit ChainChecker(CheckReport& report, std::uint64_t most_steps = 50'000'000)
      : report_(report), steps_left_(most_steps) {}

  /// `key`: the first key of this file's chain, if known. Used only if the file starts a chain or is the first one
  /// checked; other files continue with the key of the previous line.
  void beginFile(const std::string& name, std::uint32_t number, const std::optional<Digest>& key);
  /// Checks the next line, including its line end.
  void line(std::string_view text);
  /// Sets the line that anchorSeen() reports.
  void watchFor(std::uint64_t seq, const Digest& hash) { anchor_ = {seq, hash}; }

  /// Adds a finding at the current line, or at the file as a whole.
  void report(std::string what, bool whole_file = false);
  [[nodiscard]] const Link& link() const { return link_; }
  [[nodiscard]] bool keyKnown() const { return key_known_; }
  [[nodiscard]] bool anchorSeen() const { return anchor_seen_; }
  /// The oldest file kept according to the last pruning record, or 0.
  [[nodiscard]] std::uint32_t oldestKept() const { return oldest_kept_; }
  /// Number of the file in which the current chain starts; 0: in none of these files.
  [[nodiscard]] std::uint32_t chainStart() const { return chain_start_; }

 private:
  /// The first line of a file must start a chain or name the line that it continues. For the first file of all, takes
  /// over the link that it names: earlier files were pruned.
  void firstLine(const SealedLine& sealed);
  /// Checks sequence number, hash and MAC of a line against link_, and advances link_.
  void follow(const SealedLine& sealed);
  /// Derives the key for the line after `seq`. If that is too far away, the key is unknown from then on.
  void evolveTo(std::uint64_t seq);

  struct Anchor {
    std::uint64_t seq = 0;
    Digest hash{};
  };

  CheckReport& report_;
  std::uint64_t steps_left_;        ///< see the constructor
  Link link_;                       ///< of the last checked line
  bool linked_ = false;             ///< link_ is the predecessor of the next line
  bool key_known_ = false;          ///< link_.key is the key of line link_.seq + 1
  std::optional<Digest> file_key_;  ///< see beginFile()
  std::string file_;
  std::uint32_t number_ = 0;  ///< of the current file
  std::uint64_t line_ = 0;    ///< in the current file, from 1
  bool first_of_all_ = true;  ///< no line was checked yet
  Anchor anchor_;
  bool anchor_seen_ = false;
  std::uint32_t oldest_kept_ = 0;
  std::uint32_t chain_start_ = 0;
};

/// Parses "SEQ:HASH". False if it is malformed.
bool parseAnchor(std::string_view text, std::uint64_t& seq, Digest& hash);

}  // namespace caisson::audit
