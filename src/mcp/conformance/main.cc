// caisson-mcp-conformance [--http ADDR]: serves the fixtures of the official conformance suite over the transports of
// `caisson mcp`, without a token. `caisson mcp --conformance` starts it; it is not installed.
#include <cstdio>
#include <string_view>

#include "mcp/conformance/fixture.h"
#include "mcp/serve.h"

int main(int count, char** words) {
  caisson::mcp::TransportOptions options{.without_token = true};
  if (count == 3 && words[1] == std::string_view("--http")) {
    options.http = words[2];
  } else if (count != 1) {
    std::fputs("usage: caisson-mcp-conformance [--http ADDR]\n", stderr);
    return 125;
  }
  const auto features = caisson::mcp::makeFixture();
  const auto served = caisson::mcp::serveFeatures(*features, options);
  if (served) return 0;
  std::fprintf(stderr, "%s\n", served.error().message().c_str());
  return 125;
}
