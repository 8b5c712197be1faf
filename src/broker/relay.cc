#include "broker/relay.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cstring>

namespace caisson::broker {
namespace {

constexpr std::size_t kPiece = 16 * 1024;
constexpr int kTurns = 64;  // rounds of progress() at once, then other connections run

bool wouldBlock(SSL* tls, int result) {
  const int error = SSL_get_error(tls, result);
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

}  // namespace

void Broker::sendReport(const egress::BrokerReport& report) const {
  const std::string packet = encode(report);
  ::send(egress_.get(), packet.data(), packet.size(), MSG_NOSIGNAL);
}

Relay::Relay(Broker& broker, const Host& host, sys::Fd client, sys::Fd upstream)
    : broker_(broker),
      host_(host),
      client_fd_(std::move(client)),
      upstream_fd_(std::move(upstream)),
      client_(SSL_new(host.server.get())),
      upstream_(SSL_new(host.client.get())),
      exchange_(host.target, host.injections) {}

void Relay::begin() { prepare() ? progress() : close(false); }

bool Relay::prepare() {
  const std::string& name = host_.target.host.name;
  if (!client_ || !upstream_ || SSL_set_fd(client_.get(), client_fd_.get()) != 1 ||
      SSL_set_fd(upstream_.get(), upstream_fd_.get()) != 1) {
    return false;
  }
  // SSL_set_tlsext_host_name, whose macro uses an old-style cast.
  auto* sent_name = const_cast<char*>(name.c_str());
  if (SSL_ctrl(upstream_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, sent_name) != 1) return false;
  // Without this, a trusted authority's certificate for any other host would be accepted.
  SSL_set_hostflags(upstream_.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (SSL_set1_host(upstream_.get(), name.c_str()) != 1) return false;
  SSL_set_accept_state(client_.get());
  SSL_set_connect_state(upstream_.get());
  constexpr std::uint32_t kAll = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  return broker_.loop.watch(client_fd_.get(), kAll, this) && broker_.loop.watch(upstream_fd_.get(), kAll, this);
}

void Relay::onEvents(int, std::uint32_t) { progress(); }

void Relay::progress() {
  for (int turn = 0; !closed_; ++turn) {
    if (turn == kTurns) return broker_.again(this);
    if (!shakeHands()) return;
    bool moved = false;
    if (client_ready_ && exchange_.wantsClient()) moved = read(client_.get(), true);
    if (upstream_ready_ && exchange_.wantsUpstream()) moved = read(upstream_.get(), false) || moved;
    reportEvents();
    if (exchange_.broken()) return close(false);
    if (upstream_ready_) moved = write(upstream_.get(), exchange_.toUpstream()) || moved;
    if (client_ready_) moved = write(client_.get(), exchange_.toClient()) || moved;
    if (closed_) return;
    exchange_.advance();
    if (exchange_.broken()) return close(false);
    if (exchange_.finished() && exchange_.toClient().empty() && !exchange_.owesUpstream()) return close(client_ready_);
    if (!moved) return;
  }
}

bool Relay::shakeHands() {
  if (!client_ready_) {
    const int result = SSL_do_handshake(client_.get());
    client_ready_ = result == 1;
    if (!client_ready_ && !wouldBlock(client_.get(), result)) {
      ERR_clear_error();
      broker_.sendReport({false, host_.target.text(), "tls",
                          "the program did not accept the broker's certificate, or speaks no HTTP/1.1"});
      close(false);
      return false;
    }
  }
  if (upstream_ready_ || upstream_over_) return true;
  const int result = SSL_do_handshake(upstream_.get());
  if (result == 1) {
    if (SSL_get_verify_result(upstream_.get()) == X509_V_OK && SSL_get0_peer_certificate(upstream_.get()) != nullptr) {
      upstream_ready_ = true;
      exchange_.hostProved();
    } else {
      hostFailed();
    }
  } else if (!wouldBlock(upstream_.get(), result)) {
    hostFailed();
  }
  return true;
}

void Relay::hostFailed() {
  upstream_over_ = true;
  const long verdict = SSL_get_verify_result(upstream_.get());
  std::string reason = host_.target.text() + " did not prove who it is: ";
  if (verdict != X509_V_OK) {
    reason += X509_verify_cert_error_string(verdict);
  } else {
    const unsigned long code = ERR_peek_error();
    const char* text = code == 0 ? nullptr : ERR_reason_error_string(code);
    reason += text == nullptr ? "the connection ended" : text;
  }
  ERR_clear_error();
  broker_.sendReport({false, host_.target.text(), "tls", reason});
  exchange_.hostFailed(reason);
}

bool Relay::read(SSL* tls, bool from_client) {
  char piece[kPiece];
  const int got = SSL_read(tls, piece, sizeof(piece));
  if (got > 0) {
    const std::string_view bytes(piece, static_cast<std::size_t>(got));
    from_client ? exchange_.fromClient(bytes) : exchange_.fromUpstream(bytes);
    return true;
  }
  if (wouldBlock(tls, got)) return false;
  ERR_clear_error();
  from_client ? exchange_.clientEnded() : exchange_.upstreamEnded();
  return true;
}

bool Relay::write(SSL* tls, std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::size_t size = std::min(bytes.size() - done, kPiece);
    const int sent = SSL_write(tls, bytes.data() + done, static_cast<int>(size));
    if (sent <= 0) {
      if (!wouldBlock(tls, sent)) {
        ERR_clear_error();
        done = bytes.size();  // the peer no longer reads; a host may still have sent a reason
        if (tls == client_.get()) close(false);
      }
      break;
    }
    done += static_cast<std::size_t>(sent);
  }
  if (done == 0) return false;
  ::explicit_bzero(bytes.data(), done);
  bytes.erase(0, done);
  return true;
}

void Relay::reportEvents() {
  for (Exchange::Event& event : exchange_.takeEvents()) {
    broker_.sendReport({event.used, host_.target.text(), "http", std::move(event.text)});
  }
}

void Relay::close(bool politely) {
  if (closed_) return;
  closed_ = true;
  reportEvents();
  if (politely) SSL_shutdown(client_.get());
  ERR_clear_error();
  for (sys::Fd* fd : {&client_fd_, &upstream_fd_}) {
    broker_.loop.forget(fd->get());
    fd->reset();
  }
  broker_.retire();
}

}  // namespace caisson::broker
