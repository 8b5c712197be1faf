// RESOURCES and NETWORK: limits that end or bound a run, and the destinations it can reach.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "sys/fd.h"
#include "verify/egress_checks.h"
#include "verify/suite.h"

namespace caisson::verify {
namespace {

constexpr Check kResources[] = {
    {"resources.time-limit", Category::resources, "A run that takes too long is ended, with status 124",
     [](Context& context) {
       const Observed seen = context.script("sleep 3", {{"resources.wall_seconds", "300ms"}});
       return seen.result.limit == Limit::time && seen.status == 124 ? passed() : failed(seen.describe());
     }},
    {"resources.tmpfs-size", Category::resources, "A directory in memory ends at its size",
     [](Context& context) {
       // The small write proves that the large one fails for its size.
       const Observed seen = context.script(
           "echo x > /run/x && echo ok; head -c 20971520 /dev/zero > /run/x 2>/dev/null && echo wrote; echo end");
       return printed(seen, "ok\nend\n");
     }},
    {"resources.noexec", Category::resources, "Programs in a noexec directory can't be executed",
     [](Context& context) {
       // `cp` keeps the execute permission, so only the mount can refuse to execute the copy.
       const Observed seen =
           context.script("cp /bin/true /run/x && echo copied; /run/x 2>/dev/null && echo ran; echo end");
       return printed(seen, "copied\nend\n");
     }},
    {"resources.processes", Category::resources, "A fork bomb meets its limit",
     [](Context& context) { return contained(context.inside({"forks", "80"}, {{"process.max_processes", "30"}})); }},
    {"resources.memory", Category::resources, "A memory bomb meets its limit",
     [](Context& context) {
       const Observed seen = context.inside({"allocate", "402653184"}, {{"resources.memory", "64M"}});
       if (seen.ran && seen.result.limit == Limit::memory) return passed("ended by the memory limit");
       return contained(seen);
     }},
    {"resources.file-size", Category::resources, "A file ends at its size limit",
     [](Context& context) {
       const Observed seen =
           context.script("echo x > /tmp/x && echo ok; head -c 2097152 /dev/zero > /tmp/x && echo wrote",
                          {{"filesystem.max_file_size", "1M"}});
       return seen.ran && seen.out == "ok\n" ? passed() : failed(seen.describe());
     }},
    {"resources.open-files", Category::resources, "Descriptors are limited",
     [](Context& context) { return printed(context.script("ulimit -Hn", {{"resources.open_files", "64"}}), "64\n"); }},
};

/// A listener on the host's loopback, which a sandbox must not reach.
struct Listener {
  sys::Fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::uint16_t port = 0;

  Listener() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 || ::listen(fd.get(), 8) != 0 ||
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
      return;
    port = ntohs(address.sin_port);
  }
};

constexpr Check kNetwork[] = {
    {"network.host-loopback", Category::network, "What listens on the host's loopback can't be reached",
     [](Context& context) {
       const Listener listener;
       if (listener.port == 0) return skipped("no socket on the host's loopback could be made");
       return contained(context.inside({"connect", "127.0.0.1", std::to_string(listener.port)}));
     }},
    {"network.only-loopback", Category::network, "Without egress the only interface is a private loopback",
     [](Context& context) {
       return printed(context.script("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '"), "lo\n");
     }},
    {"network.own-loopback", Category::network, "The sandbox's own loopback is up",
     [](Context& context) {
       // There is no listener: a loopback that is up refuses the connection, one that is down has no route.
       const Observed seen = context.inside({"connect", "127.0.0.1", "9"});
       if (!seen.ran) return failed(seen.describe());
       return seen.out.find("ECONNREFUSED") != std::string::npos ? passed() : failed(seen.describe());
     }},
    {"network.dns", Category::network, "Permitted names resolve through egress, others do not", namesResolve},
    {"network.http", Category::network, "HTTP works through egress", httpWorks},
    {"network.https", Category::network, "HTTPS works through egress", httpsWorks},
};

}  // namespace

std::span<const Check> resourceChecks() { return kResources; }
std::span<const Check> networkChecks() { return kNetwork; }

}  // namespace caisson::verify
