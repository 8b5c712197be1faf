#include "http/connection.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "http/head.h"

namespace caisson::http {
namespace {

constexpr std::size_t kBodyWindow = std::size_t{256} << 10U;
/// A body's deadline is extended by progress of this size, so that one of single bytes does not last for days.
constexpr std::size_t kProgress = std::size_t{256} << 10U;
constexpr std::chrono::hours kForever{24 * 365};

std::string_view bodyFlaw(int status) {
  if (status == 413) return "the body is too large";
  return status == 408 ? "the body did not arrive in time" : "malformed body";
}

void signalDescriptor(const sys::Fd& descriptor) {
  const std::uint64_t one = 1;
  if (descriptor) static_cast<void>(::write(descriptor.get(), &one, sizeof one));
}

}  // namespace

/// One request on a worker. Shared, since the connection may end first.
struct Connection::Job {
  Request request;
  std::uint64_t body_limit = 0;
  bool stream_body = false;
  Lane lane = Lane::quick;
  sys::Fd cancel;
  Response response;
  bool done = false;  ///< set on the loop
};

Connection::Connection(Loop& loop, Socket socket, Peer peer, asio::ssl::context* tls)
    : loop_(loop), socket_(std::move(socket)), peer_(std::move(peer)), number_(++loop.last_number), event_(loop.io) {
  if (tls != nullptr) {
    tls_ = std::make_unique<asio::ssl::stream<Socket&>>(socket_, *tls);
    tls_buffer_ = std::make_unique<char[]>(loop_.scratch.size() / 4);
  }
  loop_.connections.insert(this);
  ++loop_.per_peer[peer_.group];
  loop_.newcomers.emplace(number_, this);
  loop_.stats.open.store(loop_.connections.size());
}

Connection::~Connection() = default;

void Connection::unregister() {
  BoostError ignored;
  socket_.shutdown(Socket::shutdown_both, ignored);
  socket_.close(ignored);
  ended_ = true;
  failBody("the connection ended");  // a worker may still wait for it
  loop_.watches.refill();
  loop_.connections.erase(this);
  loop_.newcomers.erase(number_);
  removeFromHolder();
  if (--loop_.per_peer[peer_.group] == 0) loop_.per_peer.erase(peer_.group);
  loop_.stats.open.store(loop_.connections.size());
}

void Connection::setKnown(const std::string& caller) {
  known_ = true;
  loop_.newcomers.erase(number_);
  if (caller == holder_) return;
  removeFromHolder();
  holder_ = caller;
  addToHolder();
}

void Connection::addToHolder() {
  if (!holder_.empty()) ++loop_.holders[holder_].connections;
}

void Connection::removeFromHolder() {
  endIdle();
  const auto place = loop_.holders.find(holder_);
  if (place != loop_.holders.end() && --place->second.connections == 0) loop_.holders.erase(place);
  holder_.clear();
}

void Connection::beginIdle() {
  if (holder_.empty()) return;
  idle_ = ++loop_.last_idle;
  loop_.holders[holder_].idle.emplace(idle_, this);
}

void Connection::endIdle() {
  if (idle_ != 0) loop_.holders[holder_].idle.erase(std::exchange(idle_, 0));
}

void Connection::abort() {
  BoostError ignored;
  endIdle();
  loop_.newcomers.erase(number_);
  socket_.close(ignored);
  ended_ = true;
  wake();
}

void Connection::wake() {
  woken_ = true;
  event_.cancel();
}

std::function<void()> Connection::remoteWake() {
  return [weak = weak_from_this(), &io = loop_.io] {
    asio::post(io, [weak] {
      if (const auto self = weak.lock()) self->wake();
    });
  };
}

asio::awaitable<bool> Connection::pause(TimePoint deadline) {
  if (!woken_) {
    event_.expires_at(deadline);
    BoostError code;
    co_await event_.async_wait(asio::redirect_error(asio::use_awaitable, code));
  }
  const bool was_woken = woken_;
  woken_ = false;
  co_return was_woken;
}

void Connection::startRead(std::size_t most) {
  if (reading_ || ended_ || inbox_.size() >= most) return;
  reading_ = true;
  const std::size_t room = std::min(most - inbox_.size(), loop_.scratch.size());
  auto self = shared_from_this();
  if (tls_) {
    tls_->async_read_some(asio::buffer(tls_buffer_.get(), std::min(room, loop_.scratch.size() / 4)),
                          [self](BoostError code, std::size_t size) {
                            self->received(code, std::string_view(self->tls_buffer_.get(), size));
                          });
    return;
  }
  // Waiting needs no buffer, so an idle connection costs little memory.
  socket_.async_wait(Socket::wait_read, [self, room](BoostError code) {
    std::size_t size = 0;
    if (!code) size = self->socket_.receive(asio::buffer(self->loop_.scratch, room), 0, code);
    if (code == asio::error::would_block) code = {};
    self->received(code, std::string_view(self->loop_.scratch).substr(0, size));
  });
}

void Connection::received(BoostError code, std::string_view bytes) {
  reading_ = false;
  inbox_.append(bytes);
  if (code) ended_ = true;
  wake();
}

asio::awaitable<bool> Connection::write(std::string_view bytes, TimePoint end) {
  constexpr std::size_t kPiece = std::size_t{256} << 10U;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kPiece);
    bytes.remove_prefix(piece.size());
    struct Progress {
      bool done = false;
      BoostError code;
    };
    auto progress = std::make_shared<Progress>();
    // A copy for TLS and for a peer that stalls: the operation may outlive the caller's bytes.
    auto copy = std::make_shared<std::string>(piece);
    const auto finished = [self = shared_from_this(), progress, copy](BoostError code, std::size_t /*size*/) {
      progress->done = true;
      progress->code = code;
      self->wake();
    };
    if (tls_) {
      asio::async_write(*tls_, asio::buffer(*copy), finished);
    } else {
      asio::async_write(socket_, asio::buffer(*copy), finished);
    }
    const TimePoint deadline = std::min(end, Clock::now() + loop_.limits.write_timeout);
    while (!progress->done) {
      const bool woken = co_await pause(deadline);
      if (!woken) {
        abort();
        co_return false;
      }
    }
    if (progress->code) {
      ended_ = true;
      co_return false;
    }
    loop_.stats.bytes_sent += piece.size();
  }
  co_return true;
}

asio::awaitable<bool> Connection::waitWritable() {
  auto done = std::make_shared<bool>(false);
  socket_.async_wait(Socket::wait_write, [self = shared_from_this(), done](BoostError /*code*/) {
    *done = true;
    self->wake();
  });
  const TimePoint deadline = Clock::now() + loop_.limits.write_timeout;
  while (!*done) {
    const bool woken = co_await pause(deadline);
    if (!woken) {
      abort();
      co_return false;
    }
  }
  co_return socket_.is_open();
}

asio::awaitable<bool> Connection::handshake() {
  auto outcome = std::make_shared<std::optional<BoostError>>();
  tls_->async_handshake(asio::ssl::stream_base::server, [self = shared_from_this(), outcome](BoostError code) {
    *outcome = code;
    self->wake();
  });
  const TimePoint deadline = Clock::now() + loop_.limits.head_timeout;
  while (!outcome->has_value()) {
    const bool woken = co_await pause(deadline);
    if (!woken) {
      abort();
      co_return false;
    }
  }
  co_return !**outcome;
}

asio::awaitable<void> Connection::serve() {
  const auto self = shared_from_this();
  // Whatever ends this coroutine, an exception included: the loop must not keep a connection that is freed.
  struct Registration {
    Connection& connection;
    explicit Registration(Connection& registered) : connection(registered) {}
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    ~Registration() { connection.unregister(); }
  };
  const Registration registration(*this);
  bool open = true;
  if (tls_) open = co_await handshake();
  while (open) open = co_await serveRequest();
}

asio::awaitable<std::string> Connection::receiveHead() {
  const bool may_idle = inbox_.empty() && known_;
  if (may_idle) beginIdle();
  TimePoint deadline = Clock::now() + (may_idle ? loop_.limits.idle_timeout : loop_.limits.head_timeout);
  std::size_t searched = 0;
  for (;;) {
    const std::size_t end = inbox_.find("\r\n\r\n", searched > 3 ? searched - 3 : 0);
    if (end != std::string::npos && end + 4 <= loop_.limits.head) {
      std::string head = inbox_.substr(0, end + 4);
      inbox_.erase(0, end + 4);
      co_return head;
    }
    searched = inbox_.size();
    if (searched > loop_.limits.head) {
      co_await refuse(loop_.handler.failure(431, "the request head is too large"));
      co_return std::string();
    }
    if (ended_ || (loop_.stopping && inbox_.empty())) co_return std::string();
    const bool was_empty = inbox_.empty();
    startRead();
    const bool woken = co_await pause(deadline);
    if (!inbox_.empty()) endIdle();
    if (!woken) {
      if (!inbox_.empty()) co_await refuse(loop_.handler.failure(408, "the request head did not arrive in time"));
      co_return std::string();
    }
    if (was_empty && !inbox_.empty()) deadline = Clock::now() + loop_.limits.head_timeout;
  }
}

bool Connection::feedBody(Parser& parser) { return http::feedBody(parser, inbox_, loop_.limits.head); }

asio::awaitable<int> Connection::receiveBody(Parser& parser, std::uint64_t limit) {
  TimePoint deadline = Clock::now() + loop_.limits.body_timeout;
  std::size_t mark = 0;
  for (;;) {
    if (!feedBody(parser)) co_return 400;
    if (parser.body.size() > limit) co_return 413;
    if (parser.is_done()) co_return 0;
    if (ended_) co_return 400;
    if (parser.body.size() >= mark + kProgress) {
      mark = parser.body.size();
      deadline = Clock::now() + loop_.limits.body_timeout;
    }
    startRead();
    const bool woken = co_await pause(deadline);
    if (!woken) co_return 408;
  }
}

asio::awaitable<bool> Connection::serveRequest() {
  method_.clear();
  const std::string text = co_await receiveHead();
  if (text.empty()) co_return false;
  ++loop_.stats.requests;
  parser_ = std::make_unique<Parser>(loop_.limits.headers);
  Parser& parser = *parser_;
  auto job = std::make_shared<Job>();
  RequestHead& head = job->request.head;
  std::string reason;
  const int flawed = parseHead(text, loop_.limits.head, parser, head, reason);
  method_ = head.method;
  if (flawed != 0) {
    co_await refuse(loop_.handler.failure(flawed, reason));
    co_return false;
  }
  head.peer = peer_;
  http_1_0_ = parser.version < 11;
  keep_alive_ = parser.keep_alive() && !http_1_0_ && !parser.upgrade();
  Admission admission = loop_.handler.admit(head);
  body_is_next_ = head.has_body;
  caller_ = std::move(admission.caller);
  if (admission.known) setKnown(caller_);
  if (admission.response) {
    if (body_is_next_) {
      co_await refuse(*std::move(admission.response));
      co_return false;
    }
    co_return co_await respond(head, *admission.response);
  }
  if (head.content_length.value_or(0) > admission.body_limit) {
    co_await refuse(loop_.handler.failure(413, "the body is too large"));
    co_return false;
  }
  if (head.has_body && head.header("expect") != nullptr) {
    const bool sent = co_await write("HTTP/1.1 100 Continue\r\n\r\n");
    if (!sent) co_return false;
  }
  job->body_limit = admission.body_limit;
  job->stream_body = admission.stream_body;
  job->lane = admission.lane;
  job->request.context = std::move(admission.context);
  if (!job->stream_body) {
    const int status = co_await receiveBody(parser, admission.body_limit);
    if (status != 0) {
      co_await refuse(loop_.handler.failure(status, bodyFlaw(status)));
      co_return false;
    }
    body_is_next_ = false;
    job->request.body = std::move(parser.body);
  }
  const bool handled = co_await dispatch(*job, job, parser);
  if (!handled) co_return false;
  if (body_is_next_ && !std::holds_alternative<ProxyBody>(job->response.body)) {
    co_await refuse(std::move(job->response));
    co_return false;
  }
  co_return co_await respond(head, job->response);
}

asio::awaitable<bool> Connection::dispatch(Job& job, const JobPointer& shared, Parser& parser) {
  if (job.stream_body) {
    job.request.stream = this;
    const std::lock_guard lock(body_mutex_);
    body_ready_.clear();
    body_taken_ = 0;
    body_total_ = 0;
    body_mark_ = 0;
    body_end_ = !body_is_next_;
    body_failure_.clear();
  }
  if (job.lane == Lane::transfer || job.lane == Lane::command) {
    job.cancel = sys::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    job.request.cancel_descriptor = job.cancel.get();
  }
  const auto work = [self = shared_from_this(), shared] {
    shared->response = self->loop_.handler.handle(shared->request);
    std::string().swap(shared->request.body);  // the response may take long to be sent
    asio::post(self->loop_.io, [self, shared] {
      shared->done = true;
      self->wake();
    });
  };
  const bool accepted = loop_.workers(job.lane).run(work, caller_);
  if (!accepted) {
    Response busy = loop_.handler.failure(503, "too many requests are being handled");
    busy.headers.emplace_back("Retry-After", "1");
    co_await refuse(std::move(busy));
    co_return false;
  }
  bool cancelled = false;
  TimePoint progress = Clock::now();
  while (!job.done) {
    if (job.stream_body && body_is_next_) pumpBody(parser, job.body_limit, progress);
    // A peer that closed its side does not read the response.
    if (ended_ && !cancelled) {
      cancelled = true;
      signalDescriptor(job.cancel);
      failBody("the peer closed the connection");
    }
    startRead(job.stream_body ? kMaxInbox : loop_.limits.head);
    const TimePoint deadline =
        job.stream_body && body_is_next_ ? progress + loop_.limits.body_timeout : Clock::now() + kForever;
    const bool woken = co_await pause(deadline);
    if (!woken) failBody("the body did not arrive in time");
    if (!woken) progress = Clock::now() + kForever;
  }
  co_return !ended_;
}

void Connection::pumpBody(Parser& parser, std::uint64_t limit, TimePoint& progress) {
  const std::lock_guard lock(body_mutex_);
  if (!body_failure_.empty()) return;
  if (body_ready_.size() - body_taken_ >= kBodyWindow) {
    progress = Clock::now();  // the worker is slow, not the peer
    return;
  }
  const bool well_formed = feedBody(parser);
  body_total_ += parser.body.size();
  // A trickle of single bytes would occupy a thread for days.
  if (body_total_ >= body_mark_ + kProgress) {
    progress = Clock::now();
    body_mark_ = body_total_;
  }
  body_ready_.erase(0, body_taken_);
  body_taken_ = 0;
  body_ready_ += parser.body;
  parser.body.clear();
  if (!well_formed) body_failure_ = "malformed body";
  if (body_total_ > limit) body_failure_ = "the body is too large";
  if (parser.is_done()) {
    body_end_ = true;
    body_is_next_ = false;
  }
  body_changed_.notify_all();
}

void Connection::failBody(std::string reason) {
  const std::lock_guard lock(body_mutex_);
  if (!body_end_ && body_failure_.empty()) body_failure_ = std::move(reason);
  body_changed_.notify_all();
}

Result<std::size_t> Connection::read(std::span<char> into) {
  std::unique_lock lock(body_mutex_);
  const auto ready = [this] { return body_ready_.size() > body_taken_ || body_end_ || !body_failure_.empty(); };
  if (!ready()) {
    remoteWake()();
    body_changed_.wait(lock, ready);  // the loop ends this wait: it has a deadline for the body
  }
  const std::size_t left = body_ready_.size() - body_taken_;
  if (left == 0 && !body_failure_.empty())
    return std::unexpected(Error{.stage = Stage::usage, .call = "receive", .object = "body", .reason = body_failure_});
  const std::size_t size = std::min(left, into.size());
  std::copy_n(body_ready_.data() + body_taken_, size, into.data());
  body_taken_ += size;
  const bool low = body_ready_.size() - body_taken_ < kBodyWindow / 2;
  lock.unlock();
  if (low) remoteWake()();
  return size;
}

}  // namespace caisson::http
