#include "egress/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>

#include "egress/program.h"
#include "sys/receive.h"

namespace caisson::egress {
namespace {

constexpr int kFinishMs = 1000, kFinishAtMostMs = 30000, kReadyMs = 10000;

}  // namespace

std::string programPath(const std::string& requested) {
  return requested.empty() ? CAISSON_INSTALLED_PROGRAM : requested;
}

Result<Link> makeLink() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(sysError(Stage::launch, "socketpair", "egress", errno));
  }
  Link link{sys::Fd(ends[0]), sys::Fd(ends[1])};
  for (sys::Fd* end : {&link.sandbox, &link.egress}) {
    if (end->get() > 2) continue;  // the caller may have had 0, 1 or 2 closed
    *end = sys::Fd(::fcntl(end->get(), F_DUPFD_CLOEXEC, 3));
    if (!*end) return fail(sysError(Stage::launch, "fcntl", "F_DUPFD_CLOEXEC", errno));
  }
  return link;
}

std::vector<std::string> hostDnsServers() {
  std::vector<std::string> servers;
  const sys::Fd file(::open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC));
  char text[8192];
  const ssize_t got = file ? ::read(file.get(), text, sizeof(text)) : 0;
  std::string_view rest(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (!line.starts_with("nameserver")) continue;
    line.remove_prefix(10);
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == 0 || begin == std::string_view::npos) continue;
    const std::string_view address = line.substr(begin, line.find_first_of(" \t\r#;", begin) - begin);
    if (Address::parse(address)) servers.emplace_back(address);
  }
  return servers;
}

Result<Process> Process::start(const std::string& program, const Settings& settings, sys::Fd link, sys::Fd broker) {
  return spawn(program, settings, std::move(link), std::move(broker), -1, -1);
}

Result<Process> Process::startForSession(const std::string& program, Settings settings, sys::Fd link, sys::Fd broker,
                                         int init, int listener) {
  settings.for_session = true;
  auto process = spawn(program, settings, std::move(link), std::move(broker), init, listener);
  if (!process) return process;
  pollfd wait{process->descriptor(), POLLIN, 0};
  std::optional<Error> failure = plainError(Stage::launch, "egress", "egress process", "it did not start",
                                            "see the kernel's log; please report it");
  if (::poll(&wait, 1, kReadyMs) > 0) {
    process->receive([&](const Report& report) {
      failure.reset();
      if (report.kind == Report::Kind::failed)
        failure = plainError(Stage::launch, "egress", "egress process", report.text);
      if (report.kind == Report::Kind::ready) process->capture_ = report.text;
    });
  }
  if (failure) return fail(*failure);
  return process;
}

void Process::requestTotals() {
  (void)!::send(control_.get(), kWantsTotals.data(), kWantsTotals.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

Result<Process> Process::spawn(const std::string& program, const Settings& settings, sys::Fd link, sys::Fd broker,
                               int init, int listener) {
  auto control = makeLink();
  if (!control) return fail(control.error());
  const std::string packet = encode(settings);
  if (::send(control->sandbox.get(), packet.data(), packet.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(packet.size())) {
    return fail(sysError(Stage::launch, "send", "egress settings", errno, "use fewer host patterns"));
  }
  // Order as in program.h.
  auto helper =
      sys::HelperProcess::start({.path = programPath(program),
                                 .words = {"caisson", std::string(kProgramWord)},
                                 .descriptors = {control->egress.get(), link.get(), broker.get(), init, listener}});
  if (!helper) {
    Error error = helper.error();
    error.hint = "network mode proxy starts the caisson program again; is it installed there?";
    return fail(error);
  }
  Process process;
  process.helper_ = std::move(*helper);
  process.control_ = std::move(control->sandbox);
  return process;
}

bool Process::receive(const std::function<void(const Report&)>& take) {
  std::string packet(kPacketBytes, '\0');
  for (;;) {
    const ssize_t got =
        sys::receiveMessage(control_.get(), std::as_writable_bytes(std::span(packet)), {}, MSG_DONTWAIT);
    if (got <= 0) return got == -EAGAIN;
    const auto report = decodeReport({packet.data(), static_cast<std::size_t>(got)});
    if (!report) continue;
    take(*report);
    if (report->kind == Report::Kind::request && report->request.operation == kOpened) ++opened_;
  }
}

void Process::confirmRecorded() {
  if (confirmed_ == opened_) return;
  const std::string packet = encodeRecorded(opened_);
  // If the socket is full, the next report retries; the number covers all earlier connections.
  const ssize_t sent = ::send(control_.get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == static_cast<ssize_t>(packet.size())) confirmed_ = opened_;
}

Result<void> Process::change(const Change& change) {
  if (auto pattern = parsePattern(change.pattern); !pattern) {
    return fail(plainError(Stage::policy, "egress", change.pattern, pattern.error(),
                           "use a host name, \"*.name\", \".name\", an address or \"*\", with or without \":port\""));
  }
  const std::string packet = encode(change);
  if (::send(control_.get(), packet.data(), packet.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(packet.size())) {
    return fail(sysError(Stage::supervise, "send", "egress", errno, "the session's egress is gone; start a new one"));
  }
  return {};
}

void Process::finish(const std::function<void(const Report&)>& take) {
  if (!helper_.started()) return;
  ::shutdown(control_.get(), SHUT_WR);
  using std::chrono::milliseconds, std::chrono::steady_clock;
  const auto latest = steady_clock::now() + milliseconds(kFinishAtMostMs);
  auto deadline = steady_clock::now() + milliseconds(kFinishMs);
  // The deadline moves while reports arrive: writing thousands of them to the audit log takes more than a second.
  const auto taking = [&](const Report& report) {
    take(report);
    deadline = std::min(latest, steady_clock::now() + milliseconds(kFinishMs));
  };
  while (receive(taking)) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) break;
    pollfd wait{control_.get(), POLLIN, 0};
    ::poll(&wait, 1, static_cast<int>(left.count()));
  }
  helper_.end();
}

}  // namespace caisson::egress
