#include <charconv>

#include "audit/check.h"
#include "audit/reader.h"

namespace caisson::audit {
namespace {

/// The value of a member of "data" in a body that this program wrote; "" if missing. Sufficient for the log's own
/// events, whose values are plain words and numbers.
std::string_view plainMember(std::string_view body, std::string_view key) {
  const std::string sought = "\"" + std::string(key) + "\":";
  std::size_t at = body.find(sought);
  if (at == std::string_view::npos) return {};
  at += sought.size();
  if (at < body.size() && body[at] == '"') ++at;
  std::size_t end = at;
  while (end < body.size() && body[end] != '"' && body[end] != ',' && body[end] != '}') ++end;
  return body.substr(at, end - at);
}

std::uint64_t numberIn(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

std::string_view eventOf(std::string_view body) {
  const std::size_t at = body.find(",\"event\":\"");
  return at == std::string_view::npos ? std::string_view() : plainMember(body.substr(at), "event");
}

}  // namespace

bool parseAnchor(std::string_view text, std::uint64_t& seq, Digest& hash) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  seq = numberIn(text.substr(0, colon));
  return seq != 0 && readHex(text.substr(colon + 1), hash);
}

void ChainChecker::report(std::string what, bool whole_file) {
  if (report_.findings.size() < kMaxFindings)
    report_.findings.push_back({file_, whole_file ? 0 : line_, std::move(what)});
}

void ChainChecker::beginFile(const std::string& name, std::uint32_t number, const std::optional<Digest>& key) {
  file_ = name;
  number_ = number;
  line_ = 0;
  file_key_ = key;
}

void ChainChecker::evolveTo(std::uint64_t seq) {
  if (!key_known_) return;
  if (seq < link_.seq || seq - link_.seq > steps_left_) {
    key_known_ = false;
    return;
  }
  steps_left_ -= seq - link_.seq;
  for (; link_.seq < seq; ++link_.seq) link_.key = nextKey(link_.key);
}

void ChainChecker::firstLine(const SealedLine& sealed) {
  const std::string_view event = eventOf(sealed.body);
  if (event == "log_started" || event == "log_head_lost") {
    if (!first_of_all_) report("a new chain begins here: the head of the one before was lost or replaced");
    chain_start_ = number_;
    link_ = {};
    linked_ = true;
    key_known_ = file_key_.has_value();
    if (file_key_) link_.key = *file_key_;
    return;
  }
  Digest previous{};
  const std::uint64_t seq = numberIn(plainMember(sealed.body, "previous_seq"));
  if (event != "log_continued" || seq == 0 || !readHex(plainMember(sealed.body, "previous_hash"), previous)) {
    report("the file does not begin as one that caisson began");
    return;
  }
  if (!first_of_all_) return;  // the previous lines determine the link
  // The earlier files were pruned. Accept the link in this line: its hash covers it, and the MAC covers the hash.
  link_ = {};
  key_known_ = file_key_.has_value();
  if (file_key_) link_.key = *file_key_;
  evolveTo(seq);
  link_.seq = seq;
  link_.hash = previous;
  linked_ = true;
}

void ChainChecker::line(std::string_view text) {
  ++line_;
  ++report_.lines;
  SealedLine sealed;
  if (!splitLine(text, sealed)) {
    report("not a line of the log: it was damaged, or not written by caisson");
    linked_ = false;
    return;
  }
  if (line_ == 1) firstLine(sealed);
  first_of_all_ = false;
  follow(sealed);
  if (eventOf(sealed.body) == "log_pruned")
    oldest_kept_ = static_cast<std::uint32_t>(numberIn(plainMember(sealed.body, "oldest_kept")));
}

void ChainChecker::follow(const SealedLine& sealed) {
  const std::uint64_t seq = seqOf(sealed.body);
  if (report_.first_seq == 0) report_.first_seq = seq;
  bool hash_expected = linked_;
  if (seq != link_.seq + 1) {
    if (seq > link_.seq + 1) {
      report("lines " + std::to_string(link_.seq + 1) + " to " + std::to_string(seq - 1) +
             " are missing before this one");
      evolveTo(seq - 1);
    } else {
      report("line " + std::to_string(seq) + " comes after line " + std::to_string(link_.seq) +
             ": it was copied or moved");
      key_known_ = false;
    }
    hash_expected = false;
  }
  const bool hash_fits = hashFollows(sealed, link_.hash);
  const bool mac_fits = key_known_ && macOf(link_.key, sealed.hash) == sealed.mac;
  if (hash_expected && !hash_fits) {
    report(mac_fits ? "line " + std::to_string(seq) + " was changed after it was written"
                    : "line " + std::to_string(seq) + " does not follow from the line before: one of them was changed");
  } else if (key_known_ && !mac_fits) {
    report("line " + std::to_string(seq) + " was not written with the key of this log");
  }
  if (seq == anchor_.seq && sealed.hash == anchor_.hash) anchor_seen_ = true;
  link_.seq = seq;
  link_.hash = sealed.hash;
  if (key_known_) link_.key = nextKey(link_.key);
  linked_ = true;
  report_.last_seq = seq;
}

}  // namespace caisson::audit
