// Lines of a client, whatever they hold: framed, parsed and served by the real protocol code over the fixture. Nothing
// crashes, and every message that goes out is one line of JSON.
#include <cstdint>
#include <cstdlib>

#include "mcp/conformance/fixture.h"
#include "mcp/lines.h"
#include "mcp/server/server.h"

namespace {

using namespace caisson::mcp;

class Checker final : public Channel {
 public:
  void send(const Json& message) override {
    const std::string line = caisson::writeJson(message);
    if (line.find('\n') != std::string::npos || !caisson::parseJson(line, {.depth = 80})) std::abort();
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::unique_ptr<Features> features = makeFixture();
  static Server* const server = new Server(*features);
  const auto client = std::make_shared<Client>();
  const auto channel = std::make_shared<Checker>();
  LineSplitter lines(4096);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (std::size_t at = 0; at < bytes.size(); at += 97) {
    lines.add(bytes.substr(at, 97), [&](std::string_view line, bool whole) {
      if (!whole) return;
      auto value = caisson::parseJson(line, {.bytes = 4096});
      if (!value) return;
      auto message = decodeMessage(std::move(*value));
      if (!message) return Server::refuse(message.error(), *channel);
      server->receive(client, std::move(*message), channel, Server::Expect::either);
    });
  }
  client->settle(std::chrono::milliseconds(0), -1);
  client->cancelAll();
  return 0;
}
