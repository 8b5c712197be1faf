#include "egress/resolver.h"

#include <sys/epoll.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>

namespace caisson::egress {
namespace {

constexpr auto kTimeout = std::chrono::milliseconds(1500);
constexpr int kAttempts = 4;
constexpr std::uint32_t kLeastTtl = 5, kMaxTtl = 300;
constexpr std::size_t kMaxKnown = 4096;
constexpr std::size_t kMaxAnswerBytes = 4096;

std::uint16_t drawId() {
  std::uint16_t id = 0;
  (void)!::getrandom(&id, sizeof(id), 0);  // on failure the random source port still protects
  return id;
}

}  // namespace

/// One name: queries for both families over UDP, and over TCP if a response was truncated.
class Resolver::Lookup final : public Watcher {
 public:
  Lookup(Resolver& resolver, std::string name) : resolver_(resolver), name_(std::move(name)) {
    questions_[0].type = dns::kTypeA;
    questions_[1].type = dns::kTypeAaaa;
  }
  ~Lookup() { close(); }

  /// Sends the open queries to the next server; also for retries.
  void start(Clock::time_point now) {
    close();
    deadline_ = now + kTimeout;
    if (resolver_.servers_.empty()) return;
    const Address& server = resolver_.servers_[static_cast<std::size_t>(attempt_) % resolver_.servers_.size()];
    udp_ = sys::Fd(::socket(server.isV4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    // Connected, so the kernel drops datagrams from other senders.
    const SocketAddress to = socketAddress({server, kPort});
    if (!udp_ || ::connect(udp_.get(), to.get(), to.size) != 0) return;
    resolver_.loop_.watch(udp_.get(), EPOLLIN, this);
    for (Question& question : questions_) {
      if (question.done) continue;
      question.id = drawId();
      const auto query = dns::buildQuery(question.id, name_, question.type);
      ::send(udp_.get(), query.data(), query.size(), MSG_NOSIGNAL);
    }
  }

  void onEvents(int descriptor, std::uint32_t) override {
    if (descriptor == udp_.get()) {
      onDatagram();
    } else {
      onStream();
    }
    if (questions_[0].done && questions_[1].done) succeed();
  }

  void tick(Clock::time_point now) {
    if (now < deadline_) return;
    if (++attempt_ < kAttempts) return start(now);
    if (questions_[0].done || questions_[1].done) return succeed();
    resolver_.finish(this, {.failed = true}, 0);
  }

  void close() {
    for (sys::Fd* fd : {&udp_, &tcp_}) {
      if (*fd) resolver_.loop_.forget(fd->get());
      fd->reset();
    }
  }

  std::vector<std::pair<const void*, Callback>> waiting;
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  struct Question {
    std::uint16_t type = 0, id = 0;
    bool done = false;
  };

  void onDatagram() {
    std::uint8_t bytes[kMaxAnswerBytes];
    for (int i = 0; i < 8; ++i) {
      const ssize_t got = ::recv(udp_.get(), bytes, sizeof(bytes), 0);
      if (got < 0 && errno == ECONNREFUSED) deadline_ = Clock::now();  // no server there: try the next one at once
      if (got <= 0) return;
      take({bytes, static_cast<std::size_t>(got)}, false);
    }
  }

  /// Handles one response; ignores one that matches no open query.
  void take(dns::Bytes bytes, bool by_stream) {
    for (Question& question : questions_) {
      if (question.done) continue;
      const auto response = dns::parseResponse(bytes, question.id, name_, question.type);
      if (!response) continue;
      if (response->truncated && !by_stream) return askByStream(question);
      if (response->code != dns::Rcode::ok && response->code != dns::Rcode::no_such_name) {
        deadline_ = Clock::now();  // this server failed: tick() tries the next
        return;
      }
      question.done = true;
      ttl_ = std::min(ttl_, response->addresses.empty() ? kMaxTtl : response->ttl);
      aliases_.insert(aliases_.end(), response->aliases.begin(), response->aliases.end());
      addresses_.insert(addresses_.end(), response->addresses.begin(), response->addresses.end());
      return;
    }
  }

  /// Repeats a query over TCP, since its response was truncated.
  void askByStream(const Question& question) {
    if (tcp_) return;
    const Address& server = resolver_.servers_[static_cast<std::size_t>(attempt_) % resolver_.servers_.size()];
    tcp_ = startConnect({server, kPort});
    if (!tcp_) return;
    const auto query = dns::buildQuery(question.id, name_, question.type);
    outgoing_.assign({static_cast<char>(query.size() >> 8), static_cast<char>(query.size() & 0xff)});
    outgoing_.append(query.begin(), query.end());
    incoming_.clear();
    resolver_.loop_.watch(tcp_.get(), EPOLLIN | EPOLLOUT, this);
  }

  void onStream() {
    if (!outgoing_.empty()) {
      const ssize_t sent = ::send(tcp_.get(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
      if (sent > 0) outgoing_.erase(0, static_cast<std::size_t>(sent));
      if (outgoing_.empty()) resolver_.loop_.watch(tcp_.get(), EPOLLIN, this);
    }
    char room[2048];
    const ssize_t got = ::recv(tcp_.get(), room, sizeof(room), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0) incoming_.append(room, static_cast<std::size_t>(got));
    const std::size_t size = incoming_.size() < 2
                                 ? 0
                                 : static_cast<std::size_t>(static_cast<unsigned char>(incoming_[0])) << 8 |
                                       static_cast<unsigned char>(incoming_[1]);
    const bool whole = incoming_.size() >= 2 && incoming_.size() >= size + 2;
    if (whole) take({reinterpret_cast<const std::uint8_t*>(incoming_.data()) + 2, size}, true);
    if (whole || got <= 0 || incoming_.size() > 65537) {
      resolver_.loop_.forget(tcp_.get());
      tcp_.reset();
      // The other family's response may have been truncated as well: make tick() query the next server at once.
      if (!questions_[0].done || !questions_[1].done) deadline_ = std::min(deadline_, Clock::now());
    }
  }

  /// Reports the addresses. Both families were answered, or only one and no attempt is left.
  void succeed() { resolver_.finish(this, {false, std::move(aliases_), std::move(addresses_)}, ttl_); }

  Resolver& resolver_;
  std::string name_;
  Question questions_[2];
  int attempt_ = 0;
  Clock::time_point deadline_{};
  sys::Fd udp_, tcp_;
  std::string outgoing_, incoming_;
  std::vector<std::string> aliases_;
  std::vector<Address> addresses_;
  std::uint32_t ttl_ = kMaxTtl;
};

Resolver::Resolver(Loop& loop, std::vector<Address> servers) : loop_(loop), servers_(std::move(servers)) {}
Resolver::~Resolver() = default;

void Resolver::resolve(const std::string& name, const void* owner, Callback callback) {
  const auto now = Clock::now();
  if (const auto found = known_.find(name); found != known_.end()) {
    if (found->second.until > now) {
      const Resolution copy = found->second.resolution;
      return callback(copy);
    }
    known_.erase(found);
  }
  auto& lookup = lookups_[name];
  const bool fresh = lookup == nullptr;
  if (fresh) lookup = std::make_unique<Lookup>(*this, name);
  lookup->waiting.emplace_back(owner, std::move(callback));
  if (fresh) lookup->start(now);
}

bool Resolver::knows(const std::string& name) const {
  const auto found = known_.find(name);
  return found != known_.end() && found->second.until > Clock::now();
}

void Resolver::cancel(const void* owner) {
  for (auto& [name, lookup] : lookups_) {
    std::erase_if(lookup->waiting, [&](const auto& entry) { return entry.first == owner; });
  }
}

void Resolver::finish(Lookup* lookup, Resolution resolution, std::uint32_t ttl) {
  const auto found = lookups_.find(lookup->name());
  if (found == lookups_.end() || found->second.get() != lookup) return;
  if (!resolution.failed) {
    if (known_.size() >= kMaxKnown) known_.clear();
    known_[lookup->name()] = {resolution, Clock::now() + std::chrono::seconds(std::clamp(ttl, kLeastTtl, kMaxTtl))};
  }
  lookup->close();
  const auto waiting = std::move(lookup->waiting);
  ended_.push_back(std::move(found->second));
  lookups_.erase(found);
  for (const auto& [owner, callback] : waiting) callback(resolution);
}

void Resolver::tick(Clock::time_point now) {
  ended_.clear();
  std::vector<Lookup*> all;
  for (auto& [name, lookup] : lookups_) all.push_back(lookup.get());
  for (Lookup* lookup : all) lookup->tick(now);
}

}  // namespace caisson::egress
