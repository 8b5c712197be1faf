// DNS messages: questions from the sandbox, answers from servers.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "egress/dns_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson::egress;
  const std::span bytes(data, size);
  if (const auto question = dns::parseQuery(bytes)) {
    dns::Answer answer;
    if (question->type == dns::kTypeA) answer.addresses = {Address::v4(0xc6120001)};
    answer.why = "why";
    const auto wire = dns::buildAnswer(*question, answer);
    const auto read = dns::parseResponse(wire, question->id, question->name, question->type);
    if (!read || read->addresses.size() != answer.addresses.size()) std::abort();
  }
  if (size > 2) {
    const auto id = static_cast<std::uint16_t>(data[0] << 8 | data[1]);
    for (const std::uint16_t type : {dns::kTypeA, dns::kTypeAaaa}) {
      const auto response = dns::parseResponse(bytes, id, "a.b", type);
      if (response && response->addresses.size() > 16) std::abort();
    }
  }
  return 0;
}
