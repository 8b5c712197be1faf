#include "egress/records.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace caisson::egress {
namespace {

constexpr std::string_view kRecorded = "recorded";
constexpr std::uint64_t kMaxPort = std::numeric_limits<std::uint16_t>::max();
// About 35 years, and exactly representable as a double.
constexpr std::uint64_t kMaxMicroseconds = std::uint64_t{1} << 50;

// The year 10889: the supervisor accepts no later time from the egress.
constexpr std::uint64_t kMaxEpochMilliseconds = std::uint64_t{1} << 48;

constexpr std::array<std::string_view, kCategories> kCategoryNames = {"host",  "metadata", "loopback", "private",
                                                                      "local", "reserved", "unknown"};
static_assert(static_cast<std::size_t>(Category::unknown) + 1 == kCategories);

std::optional<Category> categoryIn(std::string_view text) {
  const auto found = std::ranges::find(kCategoryNames, text);
  if (found == kCategoryNames.end()) return std::nullopt;
  return static_cast<Category>(found - kCategoryNames.begin());
}

std::uint64_t microseconds(double milliseconds) {
  if (!(milliseconds > 0)) return 0;  // also for NaN
  return static_cast<std::uint64_t>(std::llround(std::min(milliseconds * 1000, static_cast<double>(kMaxMicroseconds))));
}

std::optional<Totals> totalsIn(const std::vector<std::string>& texts) {
  Totals totals;
  std::uint64_t* const fields[] = {&totals.connections, &totals.denied, &totals.queries, &totals.sent,
                                   &totals.received};
  for (std::size_t i = 0; i < std::size(fields); ++i) {
    const auto value = numberIn(texts[i + 1]);
    if (!value) return std::nullopt;
    *fields[i] = *value;
  }
  return totals;
}

std::optional<Request> requestIn(const std::vector<std::string>& t) {
  const auto port = numberIn(t[3], kMaxPort);
  const auto allowed = flagIn(t[5]);
  const auto sent = numberIn(t[8]), received = numberIn(t[9]);
  const auto lasted = numberIn(t[10], kMaxMicroseconds);
  const auto count = numberIn(t[11]);
  const auto category = categoryIn(t[12]);
  if (!port || !allowed || !sent || !received || !lasted || !count || !category) return std::nullopt;
  return Request{.operation = t[1],
                 .host = t[2],
                 .port = static_cast<std::uint16_t>(*port),
                 .address = t[4],
                 .allowed = *allowed,
                 .rule = t[6],
                 .remedy = t[7],
                 .sent = *sent,
                 .received = *received,
                 .milliseconds = static_cast<double>(*lasted) / 1000,
                 .count = *count,
                 .category = *category};
}

std::optional<Overflow> overflowIn(const std::vector<std::string>& t) {
  const auto allowed = flagIn(t[1]);
  const auto category = categoryIn(t[2]);
  const auto count = numberIn(t[3]);
  const auto first = numberIn(t[4], kMaxEpochMilliseconds), last = numberIn(t[5], kMaxEpochMilliseconds);
  const auto sent = numberIn(t[6]), received = numberIn(t[7]);
  if (!allowed || !category || !count || !first || !last || !sent || !received) return std::nullopt;
  return Overflow{*allowed, *category, *count, *first, *last, *sent, *received};
}

}  // namespace

std::string_view name(Category category) { return kCategoryNames[static_cast<std::size_t>(category)]; }

std::optional<std::uint64_t> numberIn(std::string_view text, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  if (!whole || value > most || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  return value;
}

std::optional<bool> flagIn(std::string_view text) {
  if (text != "0" && text != "1") return std::nullopt;
  return text == "1";
}

std::string pack(const std::vector<std::string>& texts) {
  std::string packet;
  for (const std::string& text : texts) {
    const auto size = static_cast<std::uint32_t>(text.size());
    for (int shift = 0; shift < 32; shift += 8) packet += static_cast<char>(size >> shift);
    packet += text;
  }
  return packet;
}

std::string encodeRecorded(std::uint64_t connections) {
  return pack({std::string(kRecorded), std::to_string(connections)});
}

std::optional<std::uint64_t> decodeRecorded(std::string_view packet) {
  const auto texts = unpack(packet, 2);
  if (!texts || texts->size() != 2 || texts->front() != kRecorded) return std::nullopt;
  return numberIn(texts->back());
}

std::optional<std::vector<std::string>> unpack(std::string_view packet, std::size_t most) {
  std::vector<std::string> texts;
  while (!packet.empty()) {
    if (packet.size() < 4 || texts.size() == most) return std::nullopt;
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i)
      size |= static_cast<std::size_t>(static_cast<unsigned char>(packet[i])) << 8 * i;
    packet.remove_prefix(4);
    if (size > packet.size()) return std::nullopt;
    texts.emplace_back(packet.substr(0, size));
    packet.remove_prefix(size);
  }
  return texts;
}

std::string Request::object() const {
  if (port == 0) return host;
  const bool brackets = host.find(':') != std::string::npos;
  return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string encode(const Report& report) {
  switch (report.kind) {
    case Report::Kind::ready: return pack({"ready", report.text});
    case Report::Kind::failed: return pack({"failed", report.text});
    case Report::Kind::totals: {
      const Totals& t = report.totals;
      return pack({"totals", std::to_string(t.connections), std::to_string(t.denied), std::to_string(t.queries),
                   std::to_string(t.sent), std::to_string(t.received)});
    }
    case Report::Kind::overflow: {
      const Overflow& o = report.overflow;
      return pack({"overflow", o.allowed ? "1" : "0", std::string(name(o.category)), std::to_string(o.count),
                   std::to_string(std::min(o.first_ms, kMaxEpochMilliseconds)),
                   std::to_string(std::min(o.last_ms, kMaxEpochMilliseconds)), std::to_string(o.sent),
                   std::to_string(o.received)});
    }
    case Report::Kind::question: return pack({"question", report.request.host, std::to_string(report.request.port)});
    case Report::Kind::whose:
      return pack({"whose", std::to_string(report.claim.ticket), report.claim.from, report.claim.to});
    case Report::Kind::request: break;
  }
  const Request& r = report.request;
  return pack({"request", r.operation, r.host, std::to_string(r.port), r.address, r.allowed ? "1" : "0", r.rule,
               r.remedy, std::to_string(r.sent), std::to_string(r.received),
               std::to_string(microseconds(r.milliseconds)), std::to_string(r.count), std::string(name(r.category))});
}

std::optional<Report> decodeReport(std::string_view packet) {
  const auto texts = unpack(packet, 16);
  if (!texts || texts->empty()) return std::nullopt;
  const std::vector<std::string>& t = *texts;
  Report report;
  if ((t[0] == "ready" || t[0] == "failed") && t.size() == 2) {
    report.kind = t[0] == "ready" ? Report::Kind::ready : Report::Kind::failed;
    report.text = t[1];
  } else if (t[0] == "question" && t.size() == 3) {
    const auto port = numberIn(t[2], kMaxPort);
    if (!port) return std::nullopt;
    report.kind = Report::Kind::question;
    report.request.host = t[1];
    report.request.port = static_cast<std::uint16_t>(*port);
  } else if (t[0] == "whose" && t.size() == 4) {
    const auto ticket = numberIn(t[1]);
    if (!ticket) return std::nullopt;
    report.kind = Report::Kind::whose;
    report.claim = {*ticket, t[2], t[3]};
  } else if (t[0] == "totals" && t.size() == 6) {
    const auto totals = totalsIn(t);
    if (!totals) return std::nullopt;
    report.kind = Report::Kind::totals;
    report.totals = *totals;
  } else if (t[0] == "overflow" && t.size() == 8) {
    const auto overflow = overflowIn(t);
    if (!overflow) return std::nullopt;
    report.kind = Report::Kind::overflow;
    report.overflow = *overflow;
  } else if (t[0] == "request" && t.size() == 13) {
    auto request = requestIn(t);
    if (!request) return std::nullopt;
    report.kind = Report::Kind::request;
    report.request = std::move(*request);
  } else {
    return std::nullopt;
  }
  return report;
}

}  // namespace caisson::egress
