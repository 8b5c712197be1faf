#include "verify/fake_internet.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "egress/dns_message.h"
#include "sys/fd.h"

namespace caisson::verify {
namespace {

using egress::Address;
using sys::Fd;

constexpr std::uint16_t kDnsPort = 53, kHttpPort = 80;

bool writeFile(const char* path, const std::string& text) {
  const Fd file(::openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// Enters a new network namespace and brings its loopback up; returns why that failed, or "". An ordinary user needs a
/// user namespace around it, which maps its own ids.
std::string enterNamespace() {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  const int flags = CLONE_NEWNET | (uid == 0 ? 0 : CLONE_NEWUSER);
  if (::unshare(flags) != 0) return std::string("no network namespace for it: ") + std::strerror(errno);
  if (uid != 0) {
    const std::string user = std::to_string(uid), group = std::to_string(gid);
    if (!writeFile("/proc/self/setgroups", "deny") || !writeFile("/proc/self/uid_map", user + " " + user + " 1") ||
        !writeFile("/proc/self/gid_map", group + " " + group + " 1")) {
      return "no user namespace for it: its ids can't be mapped";
    }
  }
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  std::strncpy(loopback.ifr_name, "lo", IFNAMSIZ - 1);
  loopback.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &loopback) != 0) return "its loopback can't be brought up";
  return {};
}

Fd listenOn(std::uint16_t port, int type) {
  Fd socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  const bool bound = ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
                     (type == SOCK_DGRAM || ::listen(socket.get(), 16) == 0);
  return bound ? std::move(socket) : Fd();
}

class NameServer {
 public:
  explicit NameServer(Fd socket) : socket_(std::move(socket)) {}
  [[nodiscard]] int descriptor() const { return socket_.get(); }

  void answerOne() {
    std::uint8_t query[1500];
    sockaddr_in asker{};
    socklen_t length = sizeof(asker);
    const ssize_t got =
        ::recvfrom(socket_.get(), query, sizeof(query), 0, reinterpret_cast<sockaddr*>(&asker), &length);
    if (got <= 0) return;
    const auto question = egress::dns::parseQuery({query, static_cast<std::size_t>(got)});
    if (!question) return;
    egress::dns::Answer answer;
    answer.ttl = 1;
    if (question->type == egress::dns::kTypeA) {
      for (const char* text : addressesOf(question->name)) answer.addresses.push_back(*Address::parse(text));
      if (answer.addresses.empty()) answer.code = egress::dns::Rcode::no_such_name;
    }
    const auto bytes = egress::dns::buildAnswer(*question, answer);
    ::sendto(socket_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&asker), length);
  }

 private:
  std::vector<const char*> addressesOf(std::string_view name) {
    if (name == "site.verify.example") return {"127.0.0.1"};
    if (name == "elsewhere.example") return {"93.184.216.34"};  // exists, but is not allowed
    if (name == "inner.verify.example") return {"127.0.0.9"};
    if (name == "ten.verify.example") return {"10.1.2.3"};
    if (name == "metadata.verify.example") return {"169.254.169.254"};
    if (name == "mixed.verify.example") return {"93.184.216.34", "127.0.0.9"};
    if (name == "flip.verify.example") return {flips_++ == 0 ? "127.0.0.1" : "127.0.0.9"};
    return {};
  }

  Fd socket_;
  int flips_ = 0;
};

std::string replyTo(std::string_view request, const std::string& address) {
  if (request.starts_with("GET /to-metadata ")) {
    return "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/\r\nContent-Length: 0\r\n\r\n";
  }
  if (request.starts_with("GET /to-elsewhere ")) {
    return "HTTP/1.1 302 Found\r\nLocation: http://elsewhere.example/\r\nContent-Length: 0\r\n\r\n";
  }
  const std::string body = "served by " + address + "\n";
  return "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\n\r\n" + body;
}

void serveOne(int listener) {
  const Fd client(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!client) return;
  const timeval patience{2, 0};
  ::setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  std::string request;
  char piece[2048];
  while (request.size() < sizeof(piece) * 4 && request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t got = ::read(client.get(), piece, sizeof(piece));
    if (got <= 0) return;
    request.append(piece, static_cast<std::size_t>(got));
  }
  sockaddr_in local{};
  socklen_t length = sizeof(local);
  ::getsockname(client.get(), reinterpret_cast<sockaddr*>(&local), &length);
  char address[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, &local.sin_addr, address, sizeof(address));
  const std::string reply = replyTo(request, address);
  ::send(client.get(), reply.data(), reply.size(), MSG_NOSIGNAL);
}

[[noreturn]] void serve(NameServer names, Fd web) {
  for (;;) {
    pollfd polls[] = {{names.descriptor(), POLLIN, 0}, {web.get(), POLLIN, 0}};
    if (::poll(polls, 2, -1) < 0 && errno != EINTR) ::_exit(1);
    if (polls[0].revents != 0) names.answerOne();
    if (polls[1].revents != 0) serveOne(web.get());
  }
}

/// Runs in the check's own process.
Verdict performBesideServers(Context& context, Verdict (*perform)(Context&)) {
  if (std::string why = enterNamespace(); !why.empty()) return skipped(why);
  Fd dns = listenOn(kDnsPort, SOCK_DGRAM);
  Fd web = listenOn(kHttpPort, SOCK_STREAM);
  if (!dns || !web) return skipped("its servers could not be started: " + std::string(std::strerror(errno)));
  const pid_t parent = ::getpid();
  const pid_t server = ::fork();
  if (server < 0) return skipped("no process for its servers");
  if (server == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    serve(NameServer(std::move(dns)), std::move(web));
  }
  dns.reset();
  web.reset();
  const Verdict verdict = perform(context);
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
  return verdict;
}

}  // namespace

Verdict withFakeInternet(Context& context, Verdict (*perform)(Context& context)) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return skipped("no pipe");
  Fd ours(ends[0]), theirs(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return skipped("no process for the check");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    ours.reset();
    const Verdict verdict = performBesideServers(context, perform);
    const std::string text = std::string(1, static_cast<char>('0' + static_cast<int>(verdict.state))) + verdict.detail;
    (void)!::write(theirs.get(), text.data(), text.size());
    ::_exit(0);
  }
  theirs.reset();
  std::string text;
  char piece[4096];
  for (ssize_t got = 0; (got = ::read(ours.get(), piece, sizeof(piece))) > 0 || (got < 0 && errno == EINTR);) {
    if (got > 0) text.append(piece, static_cast<std::size_t>(got));
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (text.empty()) return failed("the check's own process ended without a word");
  return {static_cast<CheckState>(text[0] - '0'), text.substr(1)};
}

}  // namespace caisson::verify
