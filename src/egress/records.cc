#include "egress/records.h"

#include <charconv>

namespace caisson::egress {
namespace {

std::uint64_t number(const std::string& text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::string pack(const std::vector<std::string>& texts) {
  std::string packet;
  for (const std::string& text : texts) {
    const auto size = static_cast<std::uint32_t>(text.size());
    for (int shift = 0; shift < 32; shift += 8) packet += static_cast<char>(size >> shift);
    packet += text;
  }
  return packet;
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
    case Report::Kind::question: return pack({"question", report.request.host, std::to_string(report.request.port)});
    case Report::Kind::request: break;
  }
  const Request& r = report.request;
  return pack({"request", r.operation, r.host, std::to_string(r.port), r.address, r.allowed ? "1" : "0", r.rule,
               r.remedy, std::to_string(r.sent), std::to_string(r.received),
               std::to_string(static_cast<std::uint64_t>(r.milliseconds * 1000)), std::to_string(r.count)});
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
    report.kind = Report::Kind::question;
    report.request.host = t[1];
    report.request.port = static_cast<std::uint16_t>(number(t[2]));
  } else if (t[0] == "totals" && t.size() == 6) {
    report.kind = Report::Kind::totals;
    report.totals = {number(t[1]), number(t[2]), number(t[3]), number(t[4]), number(t[5])};
  } else if (t[0] == "request" && t.size() == 12) {
    report.kind = Report::Kind::request;
    report.request = {.operation = t[1],
                      .host = t[2],
                      .port = static_cast<std::uint16_t>(number(t[3])),
                      .address = t[4],
                      .allowed = t[5] == "1",
                      .rule = t[6],
                      .remedy = t[7],
                      .sent = number(t[8]),
                      .received = number(t[9]),
                      .milliseconds = static_cast<double>(number(t[10])) / 1000,
                      .count = number(t[11])};
  } else {
    return std::nullopt;
  }
  return report;
}

}  // namespace caisson::egress
