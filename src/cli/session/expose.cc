// `caisson session expose`: ports between a session and the host's loopback.
#include <charconv>

#include "base/json_writer.h"
#include "cli/output.h"
#include "cli/session/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kHostPort{
    .name = "host-port", .value = "N", .help = "The port on the host (default: a free one; with --inward: the same)."};
constexpr Option kInward{.name = "inward",
                         .help = "The other way: the session reaches the host's port (network.host_ports)."};
constexpr Option kClose{.name = "close", .help = "Close the port; connections are cut."};
constexpr Option kJson{.name = "json", .help = "Print one JSON object."};
constexpr Option kOptions[] = {kHostPort, kInward, kClose, kJson};
constexpr OptionGroup kGroups[] = {{"Options", kOptions}};

Result<std::uint16_t> portFrom(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error == std::errc{} && end == text.data() + text.size() && port != 0) return port;
  return fail(usageError(text, "a port is expected, 1 to 65535", "caisson session expose --help"));
}

void writePort(JsonWriter& json, const OpenPort& port) {
  json.beginObject().key("port").number(port.port).key("host_port").number(port.host_port);
  json.key("address").string("127.0.0.1").key("inward").boolean(port.inward).end();
}

std::string lineOf(const OpenPort& port) {
  const std::string inside = std::to_string(port.port), host = "127.0.0.1:" + std::to_string(port.host_port);
  return port.inward ? "session " + inside + " -> host " + host + "\n" : host + " -> session " + inside + "\n";
}

int list(Session& session, bool as_json) {
  const auto ports = session.openPorts();
  if (!ports) return printError(ports.error());
  std::string text;
  JsonWriter json;
  json.beginObject().key("ports").beginArray();
  for (const OpenPort& port : *ports) {
    writePort(json, port);
    text += lineOf(port);
  }
  json.end().end();
  return print(as_json ? json.text() + "\n" : text);
}

int perform(const Arguments& arguments) {
  auto session = sessionOf(arguments, "session expose", 1, 2);
  if (!session) return printError(session.error());
  if (arguments.operands.size() == 1) return list(*session, arguments.has(kJson));
  const auto port = portFrom(arguments.operands[1]);
  if (!port) return printError(port.error());
  if (arguments.has(kClose)) {
    if (auto closed = session->closePort(*port, arguments.has(kInward)); !closed) return printError(closed.error());
    return 0;
  }
  std::uint16_t host_port = 0;
  if (const auto text = arguments.value(kHostPort)) {
    const auto given = portFrom(*text);
    if (!given) return printError(given.error());
    host_port = *given;
  }
  const auto opened = session->openPort(*port, host_port, arguments.has(kInward));
  if (!opened) return printError(opened.error());
  if (!arguments.has(kJson))
    return print("127.0.0.1:" + std::to_string(opened->inward ? opened->port : opened->host_port) + "\n");
  JsonWriter json;
  writePort(json, *opened);
  return print(json.text() + "\n");
}

}  // namespace

constinit const Verb kSessionExpose{
    .path = "session expose",
    .summary = "Open a session's port on the host's loopback",
    .description =
        "Prints the address at which the port can be reached: on the host, or with --inward in the session. The policy "
        "must list it (network.exposed_ports, network.host_ports). It stays open until it is closed or the session "
        "ends. Without PORT the open ports are listed.",
    .examples =
        "caisson session expose fix-login 3000\n"
        "caisson session expose --close fix-login 3000",
    .topic = Topic::session,
    .syntax = {.groups = kGroups, .operands = "ID [PORT]"},
    .perform = perform,
};

}  // namespace caisson::cli
