#include "broker/exchange.h"

#include <cstring>
#include <utility>

namespace caisson::broker {
namespace {

namespace http = egress::http;

constexpr std::size_t kPending = 64 * 1024;
constexpr std::uint16_t kSecurePort = 443;

}  // namespace

Exchange::Exchange(egress::HostPort target, std::vector<Injection> injections)
    : target_(std::move(target)), injections_(std::move(injections)) {
  for (const Injection& one : injections_) secrets_.push_back(one.secret);
}

bool Exchange::wantsClient() const {
  return !finished_ && !client_ended_ && from_client_.size() < kPending && to_upstream_.size() < kPending;
}

bool Exchange::wantsUpstream() const {
  return !finished_ && !upstream_ended_ && proved_ && from_upstream_.size() < kPending && to_client_.size() < kPending;
}

void Exchange::fromClient(std::string_view bytes) {
  from_client_.append(bytes);
  advance();
}

void Exchange::fromUpstream(std::string_view bytes) {
  from_upstream_.append(bytes);
  advance();
}

void Exchange::clientEnded() {
  client_ended_ = true;
  advance();
}

void Exchange::upstreamEnded() {
  upstream_ended_ = true;
  advance();
}

void Exchange::hostProved() {
  proved_ = true;
  advance();
}

void Exchange::hostFailed(std::string_view reason) {
  failure_ = reason;
  advance();
}

std::vector<Exchange::Event> Exchange::takeEvents() { return std::exchange(events_, {}); }

void Exchange::advance() {
  if (finished_) return;
  if (tunnel_) {
    to_upstream_ += std::exchange(from_client_, {});
    if (!frames_.feed(std::exchange(from_upstream_, {}), secrets_, to_client_)) return breakOff();
    if (client_ended_ || upstream_ended_) finished_ = true;
    return;
  }
  for (bool moved = true; moved && !finished_ && !tunnel_;) {
    moved = request_body_.done() ? !response_due_ && !from_client_.empty() && takeRequest() : passRequestBody();
    if (!finished_ && takeResponse()) moved = true;
  }
  if (finished_) return;
  if (tunnel_) return advance();
  if (client_ended_ && response_due_ && !request_body_.done()) return breakOff();
  if (client_ended_ && !response_due_) finished_ = true;
  if (upstream_ended_ && !response_due_) finished_ = true;
}

bool Exchange::passRequestBody() {
  if (to_upstream_.size() >= kPending || from_client_.empty()) return false;
  const std::size_t used = request_body_.feed(from_client_);
  to_upstream_.append(from_client_, 0, used);
  from_client_.erase(0, used);
  if (request_body_.bad()) refuse("its chunks are malformed");
  return used > 0;
}

bool Exchange::takeRequest() {
  if (!proved_ && failure_.empty()) return false;
  const http::RequestHead head = http::parseRequest(from_client_, kSecurePort);
  if (head.status == http::Status::more) {
    if (client_ended_) breakOff();
    return false;
  }
  const auto refused = [&](std::string_view flaw) {
    refuse(flaw);
    return false;
  };
  if (head.status == http::Status::bad) return refused(head.flaw);
  if (!failure_.empty()) {
    answer(502, "Bad Gateway", "caisson: " + failure_ + "\n");
    return false;
  }
  if (head.connect || head.absolute) return refused("its target is not a path");
  if (!head.has_authority) return refused("it has no Host field");
  if (head.authority != target_) return refused("it is for another host than the connection");
  // The response would repeat the request with the credential.
  if (http::sameName(head.method, "TRACE") || http::sameName(head.method, "TRACK")) {
    return refused("its method has the host repeat the credential");
  }
  sendRequest(head);
  return true;
}

void Exchange::sendRequest(const http::RequestHead& head) {
  std::string lines;
  std::vector<std::string_view> replaced;
  for (const Injection& one : injections_) {
    lines.append(one.header).append(": ").append(one.value).append("\r\n");
    replaced.push_back(one.header);
    events_.push_back({true, std::string(one.name) + " (" + std::string(one.header) + ")"});
  }
  if (head.websocket) replaced.emplace_back("Sec-WebSocket-Extensions");  // a secret is not found in compressed frames
  to_upstream_ += http::rewriteForOrigin(head, {.extra = lines, .without = replaced, .default_port = kSecurePort});
  ::explicit_bzero(lines.data(), lines.size());
  request_body_ = http::BodyFramer(head.body);
  response_due_ = true;
  response_head_done_ = false;
  interim_ = {};
  head_request_ = head.method == "HEAD";
  websocket_ = head.websocket;
  keep_alive_ = head.keep_alive;
  from_client_.erase(0, head.used);
}

bool Exchange::takeResponse() {
  if (!response_due_) {
    if (!from_upstream_.empty()) breakOff();  // a response without a request
    return false;
  }
  bool moved = false;
  while (!response_head_done_) {
    if (!forwardResponseHead()) return moved;
    moved = true;
    if (tunnel_) return true;
  }
  const std::size_t used = response_body_.feed(from_upstream_, to_client_, trailers_);
  from_upstream_.erase(0, used);
  if (response_body_.bad()) {
    breakOff();
    return false;
  }
  if (response_body_.done()) to_client_ += withoutSecrets(std::exchange(trailers_, {}), secrets_);
  const bool over = response_body_.done() || (response_body_.untilClose() && upstream_ended_);
  if (!over) {
    if (upstream_ended_ && from_upstream_.empty()) breakOff();  // truncated
    return moved || used > 0;
  }
  const bool last = !keep_alive_ || response_body_.untilClose() || !request_body_.done();
  response_due_ = response_head_done_ = false;
  if (last) finished_ = true;
  return true;
}

bool Exchange::forwardResponseHead() {
  const http::ResponseHead head = http::parseResponse(from_upstream_, head_request_);
  if (head.status == http::Status::more) {
    if (upstream_ended_) answer(502, "Bad Gateway", "caisson: " + target_.host.text() + " ended without an answer\n");
    return false;
  }
  const bool switching = head.code == 101;
  if (head.status == http::Status::bad || (switching && (!websocket_ || !request_body_.done()))) {
    answer(502, "Bad Gateway", "caisson: the answer of " + target_.host.text() + " is malformed\n");
    return false;
  }
  if (head.code / 100 == 1 && !switching && !interim_.add(head.used)) {
    answer(502, "Bad Gateway", "caisson: " + target_.host.text() + " sent too many interim answers\n");
    return false;
  }
  to_client_ += withoutSecrets(std::string_view(from_upstream_).substr(0, head.used), secrets_);
  if (switching) {
    tunnel_ = true;
  } else if (head.code / 100 != 1) {
    response_body_ = http::BodyFramer(head.body);
    response_head_done_ = true;
    keep_alive_ = keep_alive_ && head.keep_alive;
  }
  from_upstream_.erase(0, head.used);
  return true;
}

void Exchange::refuse(std::string_view flaw) {
  const std::string text = "the request is refused: " + std::string(flaw);
  events_.push_back({false, text});
  answer(400, "Bad Request", "caisson: " + text + "\n");
}

void Exchange::answer(int code, std::string_view reason, const std::string& text) {
  if (response_head_done_) return breakOff();  // in the middle of another response
  to_client_ += "HTTP/1.1 " + std::to_string(code) + " " + std::string(reason) +
                "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " + std::to_string(text.size()) +
                "\r\nConnection: close\r\nVia: caisson\r\n\r\n" + text;
  finished_ = true;
}

}  // namespace caisson::broker
