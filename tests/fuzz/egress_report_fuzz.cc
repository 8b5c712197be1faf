// What a supervisor and an egress process tell each other. The egress process may have been taken over by what it
// read: reading any bytes ends, and only what our own writer produces is accepted.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstdint>
#include <cstdlib>

#include "egress/broker_messages.h"
#include "egress/records.h"
#include "egress/settings.h"

namespace {

using namespace caisson::egress;

void require(bool holds) {
  if (!holds) std::abort();
}

template <class Message, class Decode>
void survives(const Message& message, Decode decode) {
  const auto read = decode(encode(message));
  require(read && *read == message);
}

Report reportFrom(FuzzedDataProvider& data) {
  Report report;
  report.kind =
      data.PickValueInArray({Report::Kind::ready, Report::Kind::failed, Report::Kind::request, Report::Kind::overflow,
                             Report::Kind::question, Report::Kind::whose, Report::Kind::totals});
  const auto text = [&] { return data.ConsumeRandomLengthString(); };
  const auto number = [&] { return data.ConsumeIntegral<std::uint64_t>(); };
  const auto port = [&] { return data.ConsumeIntegral<std::uint16_t>(); };
  const auto category = [&] {
    return static_cast<Category>(data.ConsumeIntegralInRange<std::size_t>(0, kCategories - 1));
  };
  const auto time = [&] { return data.ConsumeIntegralInRange<std::uint64_t>(0, std::uint64_t{1} << 48); };
  switch (report.kind) {
    case Report::Kind::ready:
    case Report::Kind::failed: report.text = text(); break;
    case Report::Kind::totals: report.totals = {number(), number(), number(), number(), number()}; break;
    case Report::Kind::whose: report.claim = {number(), text(), text()}; break;
    case Report::Kind::overflow:
      report.overflow = {data.ConsumeBool(), category(), number(), time(), time(), number(), number()};
      break;
    case Report::Kind::question:
      report.request.host = text();
      report.request.port = port();
      break;
    case Report::Kind::request:
      report.request = {.operation = text(),
                        .host = text(),
                        .port = port(),
                        .address = text(),
                        .allowed = data.ConsumeBool(),
                        .rule = text(),
                        .remedy = text(),
                        .sent = number(),
                        .received = number(),
                        .milliseconds = static_cast<double>(data.ConsumeIntegral<std::uint32_t>()) / 1000,
                        .count = number(),
                        .category = category()};
      break;
  }
  return report;
}

Settings settingsFrom(FuzzedDataProvider& data) {
  Settings settings;
  for (auto* list :
       {&settings.rules.allowed_hosts, &settings.rules.denied_hosts, &settings.rules.allowed_ports,
        &settings.rules.denied_ports, &settings.rules.private_hosts, &settings.dns_servers, &settings.brokered}) {
    for (int left = data.ConsumeIntegralInRange(0, 3); left > 0; --left)
      list->push_back(data.ConsumeRandomLengthString());
  }
  settings.upstream_proxy = data.ConsumeRandomLengthString();
  settings.max_connections = data.ConsumeIntegral<std::uint64_t>();
  settings.max_bytes = data.ConsumeIntegral<std::uint64_t>();
  settings.dns_queries_per_minute = data.ConsumeIntegral<std::uint64_t>();
  settings.idle_seconds = data.ConsumeIntegral<std::uint64_t>();
  settings.allow_missing_sni = data.ConsumeBool();
  settings.allow_encrypted_hello = data.ConsumeBool();
  if (data.ConsumeBool()) settings.become = data.ConsumeIntegral<uid_t>();
  settings.landlock_abi = data.ConsumeIntegralInRange(0, 100);
  settings.ask = data.ConsumeBool();
  settings.for_session = data.ConsumeBool();
  settings.handed_connections = data.ConsumeBool();
  return settings;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view packet(reinterpret_cast<const char*>(data), size);
  if (const auto report = decodeReport(packet)) {
    require(encode(*report) == packet);
    require(report->request.object().size() <= packet.size() + 8);
  }
  if (const auto settings = decodeSettings(packet)) require(encode(*settings) == packet);
  if (const auto change = decodeChange(packet)) require(encode(*change) == packet);
  if (const auto word = decodeBrokerReport(packet)) require(encode(*word) == packet);
  if (const auto target = decodeHandOver(packet)) require(encodeHandOver(*target) == packet);

  FuzzedDataProvider made(data, size);
  survives(reportFrom(made), decodeReport);
  survives(settingsFrom(made), decodeSettings);
  const auto kind =
      made.PickValueInArray({Change::Kind::allow, Change::Kind::deny, Change::Kind::forget, Change::Kind::permit,
                             Change::Kind::refuse, Change::Kind::mine, Change::Kind::other});
  survives(Change{kind, made.ConsumeRemainingBytesAsString()}, decodeChange);
  return 0;
}
