#include "egress/broker_messages.h"

#include "egress/records.h"

namespace caisson::egress {

std::string encodeHandOver(std::string_view target) { return pack({"open", std::string(target)}); }

std::optional<std::string> decodeHandOver(std::string_view packet) {
  auto texts = unpack(packet, 2);
  if (!texts || texts->size() != 2 || (*texts)[0] != "open") return std::nullopt;
  return std::move((*texts)[1]);
}

std::string encode(const BrokerReport& report) {
  return pack({report.used ? "used" : "refused", report.target, report.operation, report.text});
}

std::optional<BrokerReport> decodeBrokerReport(std::string_view packet) {
  auto texts = unpack(packet, 4);
  if (!texts || texts->size() != 4) return std::nullopt;
  std::vector<std::string>& t = *texts;
  if (t[0] != "used" && t[0] != "refused") return std::nullopt;
  return BrokerReport{t[0] == "used", std::move(t[1]), std::move(t[2]), std::move(t[3])};
}

}  // namespace caisson::egress
