#include "audit/chain.h"

#include <charconv>
#include <cstdio>

#include "base/json_writer.h"

namespace caisson::audit {
namespace {

constexpr std::string_view kBeforeHash = ",\"hash\":\"";
constexpr std::string_view kBeforeMac = "\",\"mac\":\"";
constexpr std::string_view kEnd = "\"}\n";
constexpr std::string_view kStart = "{\"seq\":";
static_assert(kBeforeHash.size() + kBeforeMac.size() + kEnd.size() + 2 * kHashText == kSealBytes);

constexpr std::size_t kMaxName = 256;

// Fixed-length messages with a secret prefix and a distinct first byte, so length extension does not apply.
constexpr std::uint8_t kMacLabel = 1;
constexpr std::uint8_t kNextLabel = 2;

Digest hashOf(const Digest& previous, std::string_view body) { return Sha256().add(previous).add(body).finish(); }

void appendHex(std::string& out, const Digest& digest) {
  char text[kHashText];
  writeHex(digest, text);
  out.append(text, sizeof(text));
}

void appendBody(std::string& out, std::uint64_t seq, const Event& event, std::int64_t time_ns, int pid,
                std::string_view data) {
  out += kStart;
  out += std::to_string(seq);
  out += ",\"time\":\"";
  out += timeText(time_ns);
  out += "\",\"event\":\"";
  out += name(event.type);
  out += "\",\"severity\":\"";
  out += name(event.severity);
  out += "\",\"sandbox\":";
  appendJsonString(out, event.sandbox.substr(0, kMaxName));
  out += ",\"pid\":";
  out += std::to_string(pid);
  out += ",\"data\":";
  out += data;
}

}  // namespace

Digest nextKey(const Digest& key) { return Sha256().add(kNextLabel).add(key).finish(); }
Digest macOf(const Digest& key, const Digest& hash) { return Sha256().add(kMacLabel).add(key).add(hash).finish(); }

void appendLine(std::string& out, Link& link, const Event& event, std::int64_t time_ns, int pid) {
  const std::size_t start = out.size();
  std::string data = event.fields.json();
  // An oversized event loses its details, but is still recorded.
  if (data.size() + 1024 > kMaxLine) data = Fields().number("oversize_bytes", data.size()).json();
  appendBody(out, link.seq + 1, event, time_ns, pid, data);
  const Digest hash = hashOf(link.hash, std::string_view(out).substr(start));
  const Digest mac = macOf(link.key, hash);
  out += kBeforeHash;
  appendHex(out, hash);
  out += kBeforeMac;
  appendHex(out, mac);
  out += kEnd;
  link = {link.seq + 1, hash, nextKey(link.key)};
}

bool splitLine(std::string_view line, SealedLine& sealed) {
  if (line.size() <= kSealBytes || line.size() > kMaxLine + 1 || !line.starts_with(kStart)) return false;
  sealed.body = line.substr(0, line.size() - kSealBytes);
  std::string_view seal = line.substr(sealed.body.size());
  if (!seal.starts_with(kBeforeHash) || !seal.ends_with(kEnd)) return false;
  seal.remove_prefix(kBeforeHash.size());
  if (!readHex(seal.substr(0, kHashText), sealed.hash)) return false;
  seal.remove_prefix(kHashText);
  if (!seal.starts_with(kBeforeMac)) return false;
  seal.remove_prefix(kBeforeMac.size());
  return readHex(seal.substr(0, kHashText), sealed.mac) && seqOf(sealed.body) != 0;
}

bool hashFollows(const SealedLine& line, const Digest& previous) { return hashOf(previous, line.body) == line.hash; }

bool follows(std::string_view line, Link& link) {
  SealedLine sealed;
  if (!splitLine(line, sealed) || seqOf(sealed.body) != link.seq + 1) return false;
  if (!hashFollows(sealed, link.hash) || macOf(link.key, sealed.hash) != sealed.mac) return false;
  link = {link.seq + 1, sealed.hash, nextKey(link.key)};
  return true;
}

std::uint64_t seqOf(std::string_view body) {
  if (!body.starts_with(kStart)) return 0;
  body.remove_prefix(kStart.size());
  std::uint64_t seq = 0;
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), seq);
  return error == std::errc() && end != body.data() + body.size() && *end == ',' ? seq : 0;
}

std::string timeText(std::int64_t time_ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t seconds = time_ns / kSecond;
  std::int64_t rest = time_ns % kSecond;
  if (rest < 0) {
    rest += kSecond;
    --seconds;
  }
  std::int64_t days = seconds / 86400;
  std::int64_t of_day = seconds % 86400;
  if (of_day < 0) {
    of_day += 86400;
    --days;
  }
  // Converts days to a date with eras of 400 years that begin on 1 March; libc's gmtime takes a lock and may read a
  // zone file.
  const std::int64_t shifted = days + 719468;
  const std::int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
  const std::int64_t of_era = shifted - era * 146097;
  const std::int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const std::int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t month_from_march = (5 * of_year + 2) / 153;
  const std::int64_t day = of_year - (153 * month_from_march + 2) / 5 + 1;
  const std::int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
  const std::int64_t year = year_of_era + era * 400 + (month <= 2 ? 1 : 0);
  char text[160];  // seven numbers of any size: the compiler cannot know their ranges
  std::snprintf(text, sizeof(text), "%04lld-%02lld-%02lldT%02lld:%02lld:%02lld.%06lldZ", static_cast<long long>(year),
                static_cast<long long>(month), static_cast<long long>(day), static_cast<long long>(of_day / 3600),
                static_cast<long long>(of_day / 60 % 60), static_cast<long long>(of_day % 60),
                static_cast<long long>(rest / 1000));
  return text;
}

}  // namespace caisson::audit
