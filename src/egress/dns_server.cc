#include "egress/dns_server.h"

#include <sys/epoll.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "egress/sockets.h"

namespace caisson::egress {
namespace {

constexpr std::uint32_t kAnswerTtl = 30;
constexpr int kDatagramsATurn = 32;
constexpr std::size_t kMaxStreams = 16;
constexpr auto kStreamTimeout = std::chrono::seconds(10);

/// Sender of a query, and the address it was sent to: the response must come from there, since clients check that.
struct Asker {
  sockaddr_storage from{};
  socklen_t from_size = 0;
  alignas(cmsghdr) char control[128];
  std::size_t control_size = 0;
};

void sendFromAskedAddress(int socket, const Asker& asker, const std::vector<std::uint8_t>& bytes) {
  iovec io{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_name = const_cast<sockaddr_storage*>(&asker.from);
  header.msg_namelen = asker.from_size;
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  if (asker.control_size > 0) {
    header.msg_control = const_cast<char*>(asker.control);
    header.msg_controllen = asker.control_size;
  }
  ::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

/// One connection of DNS over TCP. Does not wait for the response before it handles the next query.
class DnsServer::Stream final : public Watcher {
 public:
  Stream(DnsServer& dns, sys::Fd socket) : dns_(dns), socket_(std::move(socket)) {
    dns_.server_.loop.watch(socket_.get(), EPOLLIN, this);
  }
  ~Stream() { close(); }

  void onEvents(int, std::uint32_t) override {
    char room[2048];
    const ssize_t got = ::recv(socket_.get(), room, sizeof(room), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return close();
    incoming_.append(room, static_cast<std::size_t>(got));
    while (incoming_.size() >= 2 && socket_) {
      const std::size_t size = static_cast<std::size_t>(static_cast<unsigned char>(incoming_[0])) << 8 |
                               static_cast<unsigned char>(incoming_[1]);
      if (size > 1024) return close();
      if (incoming_.size() < size + 2) return;
      const std::string message = incoming_.substr(2, size);
      incoming_.erase(0, size + 2);
      dns_.handle({reinterpret_cast<const std::uint8_t*>(message.data()), message.size()}, this,
                  [this](const std::vector<std::uint8_t>& answer) { send(answer); });
    }
  }

  void send(const std::vector<std::uint8_t>& answer) {
    if (!socket_) return;
    std::string out{static_cast<char>(answer.size() >> 8), static_cast<char>(answer.size() & 0xff)};
    out.append(answer.begin(), answer.end());
    // A response fits into any socket buffer; a client that does not read is disconnected.
    if (::send(socket_.get(), out.data(), out.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(out.size())) close();
  }

  void close() {
    if (!socket_) return;
    dns_.server_.resolver->cancel(this);
    dns_.server_.loop.forget(socket_.get());
    socket_.reset();
  }
  [[nodiscard]] bool closed() const { return !socket_; }
  [[nodiscard]] bool over(Clock::time_point now) const { return closed() || now - began_ > kStreamTimeout; }

 private:
  DnsServer& dns_;
  sys::Fd socket_;
  std::string incoming_;
  Clock::time_point began_ = Clock::now();
};

DnsServer::DnsServer(Server& server) : server_(server) {}
DnsServer::~DnsServer() = default;

void DnsServer::serve(int datagrams, int listener) {
  datagrams_ = datagrams;
  listener_ = listener;
  const int one = 1;
  ::setsockopt(datagrams_, SOL_IPV6, IPV6_RECVPKTINFO, &one, sizeof(one));
  ::setsockopt(datagrams_, SOL_IP, IP_PKTINFO, &one, sizeof(one));
  // Allows responses from any address; IPv6 requires this option even though all addresses are local here.
  ::setsockopt(datagrams_, SOL_IPV6, IPV6_FREEBIND, &one, sizeof(one));
  server_.loop.watch(datagrams_, EPOLLIN, this);
  if (listener_ >= 0) server_.loop.watch(listener_, EPOLLIN, this);
}

void DnsServer::onEvents(int descriptor, std::uint32_t) {
  if (descriptor == datagrams_) {
    onDatagrams();
  } else {
    accept();
  }
}

void DnsServer::tick(Clock::time_point now) {
  std::erase_if(streams_, [&](const auto& stream) { return stream->over(now); });
}

void DnsServer::accept() {
  sys::Fd socket(::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket) return server_.onAcceptFailed(listener_, this, errno);
  std::erase_if(streams_, [](const auto& stream) { return stream->closed(); });
  if (streams_.size() >= kMaxStreams) return resetOnClose(socket.get());
  streams_.push_back(std::make_unique<Stream>(*this, std::move(socket)));
}

void DnsServer::onDatagrams() {
  for (int i = 0; i < kDatagramsATurn; ++i) {
    std::uint8_t bytes[1500];
    Asker asker;
    iovec io{bytes, sizeof(bytes)};
    msghdr header{};
    header.msg_name = &asker.from;
    header.msg_namelen = sizeof(asker.from);
    header.msg_iov = &io;
    header.msg_iovlen = 1;
    header.msg_control = asker.control;
    header.msg_controllen = sizeof(asker.control);
    const ssize_t got = ::recvmsg(datagrams_, &header, MSG_DONTWAIT);
    if (got < 0) return;
    asker.from_size = header.msg_namelen;
    asker.control_size = header.msg_controllen;
    handle({bytes, static_cast<std::size_t>(got)}, this,
           [this, asker](const std::vector<std::uint8_t>& answer) { sendFromAskedAddress(datagrams_, asker, answer); });
  }
}

void DnsServer::handle(dns::Bytes message, const void* owner, const Reply& reply) {
  const auto question = dns::parseQuery(message);
  if (!question) {
    if (question.error()) reply(dns::buildFailure(message, *question.error()));
    return;
  }
  ++server_.totals.queries;
  if (question->type == dns::kTypePtr) {
    dns::Answer answer;
    answer.pointer = pointerFor(question->name);
    answer.ttl = kAnswerTtl;
    if (answer.pointer.empty()) answer.code = dns::Rcode::no_such_name;
    return reply(dns::buildAnswer(*question, answer));
  }
  const auto host = canonicalHost(question->name);
  if (!host || host->address) {
    dns::Answer answer;
    answer.code = dns::Rcode::no_such_name;
    return reply(dns::buildAnswer(*question, answer));
  }
  const Decision decision = server_.rules.judgeName(*host);
  if (!decision.allowed && server_.canAsk() && decision.askable) return answerUnasked(*question, host->name, reply);
  if (!decision.allowed) return refuse(*question, host->name, decision, reply);
  server_.report({.operation = std::string(kResolve), .host = host->name, .allowed = true, .rule = decision.rule});
  if (question->type != dns::kTypeA && question->type != dns::kTypeAaaa) {
    // Forwards no other record type: TXT and similar could be tunnels, HTTPS records would enable encrypted hellos. The
    // response is that the name exists without such a record.
    return reply(dns::buildAnswer(*question, {}));
  }
  resolveFor(*question, *host, owner, reply);
}

void DnsServer::answerUnasked(const dns::Question& question, const std::string& name, const Reply& reply) {
  dns::Answer answer;
  answer.ttl = kAnswerTtl;
  if (question.type == dns::kTypeA) {
    if (const auto address = server_.names.addressOfUnlisted(name, Clock::now())) answer.addresses.push_back(*address);
  }
  reply(dns::buildAnswer(question, answer));
}

void DnsServer::resolveFor(const dns::Question& question, const Host& host, const void* owner, const Reply& reply) {
  server_.lookUp(host, std::nullopt, owner, [this, question, host, reply](const Server::Addresses& found) {
    dns::Answer answer;
    answer.ttl = kAnswerTtl;
    if (!found.decision.allowed) return refuse(question, host.name, found.decision, reply);
    if (found.failed || found.list.empty()) {
      answer.code = found.failed ? dns::Rcode::server_failure : dns::Rcode::no_such_name;
      server_.reportUnreachable(host.name, 0, Server::describeFailure(found));
    } else if (const auto address = server_.names.addressOf(host.name, question.type == dns::kTypeA)) {
      answer.addresses.push_back(*address);
    } else {
      answer.code = dns::Rcode::refused;
    }
    reply(dns::buildAnswer(question, answer));
  });
}

void DnsServer::refuse(const dns::Question& question, const std::string& name, const Decision& decision,
                       const Reply& reply) {
  Request request;
  request.operation = kResolve;
  request.host = name;
  request.rule = decision.rule;
  request.remedy = decision.remedy;
  server_.report(std::move(request), decision.range);
  const std::string why = "caisson: " + decision.rule;
  dns::Answer answer;
  answer.code = dns::Rcode::no_such_name;
  answer.why = why;
  reply(dns::buildAnswer(question, answer));
}

std::string DnsServer::pointerFor(std::string_view name) const {
  constexpr std::string_view kTop = ".in-addr.arpa";
  if (!name.ends_with(kTop)) return {};
  name.remove_suffix(kTop.size());
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const std::string_view part = name.substr(0, name.find('.'));
    unsigned byte = 256;
    std::from_chars(part.data(), part.data() + part.size(), byte);
    if (byte > 255) return {};
    value |= byte << (8 * i);
    name.remove_prefix(std::min(name.size(), part.size() + 1));
  }
  return std::string(server_.names.nameOf(Address::v4(value)));
}

}  // namespace caisson::egress
