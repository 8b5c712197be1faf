#include "broker/start.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "egress/process.h"

namespace caisson::broker {
namespace {

constexpr const char* kName = "caisson-broker";

std::string directoryOf(std::string path) {
  char room[4096];
  const ssize_t size = ::readlink(path.c_str(), room, sizeof(room));
  if (size > 0 && static_cast<std::size_t>(size) < sizeof(room)) path.assign(room, static_cast<std::size_t>(size));
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos || path[0] != '/' ? "" : path.substr(0, slash);
}

}  // namespace

std::string program(const std::string& caisson) {
  const std::string own = directoryOf(egress::programPath(caisson));
  for (const std::string& path :
       {own + "/../libexec/caisson/" + kName, own + "/" + kName, std::string(CAISSON_INSTALLED_BROKER)}) {
    if (path[0] == '/' && ::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

Result<Started> start(const std::string& caisson, const Settings& settings) {
  const std::string path = program(caisson);
  if (path.empty()) {
    return fail(plainError(Stage::host, "broker", kName, "the program that holds credentials is not installed",
                           "install it beside caisson, or leave network.credentials out"));
  }
  int set_up[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, set_up) != 0) {
    return fail(sysError(Stage::launch, "socketpair", kName, errno));
  }
  const sys::Fd ours(set_up[0]);
  sys::Fd theirs(set_up[1]);
  auto link = egress::makeLink();
  if (!link) return fail(link.error());
  auto helper =
      sys::HelperProcess::start({.path = path, .words = {kName}, .descriptors = {theirs.get(), link->sandbox.get()}});
  if (!helper) return fail(helper.error());
  theirs.reset();
  const SecretBytes packet = encode(settings);
  const auto unheard = [] {
    return fail(
        plainError(Stage::launch, "broker", kName, "it did not start", "see the kernel's log; please report it"));
  };
  if (!packet.valid() || !sendCounted(ours.get(), packet.text())) return unheard();
  const auto bytes = receiveCounted(ours.get());
  const auto answer = bytes ? decodeAnswer(bytes->text()) : std::nullopt;
  if (!answer) return unheard();
  if (!answer->ready) return fail(plainError(Stage::launch, "broker", kName, answer->text));
  return Started{std::move(*helper), std::move(link->egress), answer->text};
}

}  // namespace caisson::broker
