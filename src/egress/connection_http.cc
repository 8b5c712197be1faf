// Plain HTTP: checks every request and follows each response to its end, so that no request can be smuggled between two
// others.
#include <utility>

#include "egress/connection.h"

namespace caisson::egress {
namespace {

constexpr int kRoundsATurn = 16;  // of one buffer in each direction, then others run

}  // namespace

void Connection::answer(int code, std::string_view reason, const std::string& text) {
  if (response_head_done_) return close(true);  // in the middle of another response
  to_client_ += "HTTP/1.1 " + std::to_string(code) + " " + std::string(reason) +
                "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " + std::to_string(text.size()) +
                "\r\nConnection: close\r\nVia: caisson\r\n\r\n" + text;
  finishAfterFlush();
}

void Connection::pumpHttp() {
  bool moved = true;
  for (int round = 0; moved && round < kRoundsATurn; ++round) {
    countBytes();
    if (denyOverLimit()) return;
    moved = pumpHttpOnce();
    if (phase_ != Phase::http || denyOverLimit()) return;
  }
  if (moved) {  // a peer that always has more must not keep the loop from DNS, timeouts and rule changes
    server_.again(this);
    return watchAll();
  }
  if (client_ended_ && from_client_.empty() && !response_due_) return finishAfterFlush();
  if (client_ended_ && from_client_.empty() && response_due_ && !request_body_.done()) return close(true);
  watchAll();
}

bool Connection::pumpHttpOnce() {
  bool moved = false;
  const auto broken = [this] {
    close(true);
    return false;
  };
  if (!readInto(client_.get(), from_client_, client_ended_)) return broken();
  if (!request_body_.done()) {
    if (to_upstream_.size() < kBufferBytes && !from_client_.empty()) {
      const std::size_t used = request_body_.feed(from_client_);
      to_upstream_.append(from_client_, 0, used);
      from_client_.erase(0, used);
      if (request_body_.bad()) {
        answer(400, "Bad Request", "caisson: the request's chunks are malformed\n");
        return false;
      }
      moved = used > 0;
    }
  } else if (!response_due_ && !from_client_.empty()) {
    moved = takeRequest();
    if (phase_ != Phase::http) return false;
  }
  const std::size_t pending = to_upstream_.size();
  if (!to_upstream_.empty() && !flush(upstream_.get(), to_upstream_)) return broken();
  if (to_upstream_.size() < pending && !from_client_.empty()) moved = true;  // there is room again
  if (to_client_.size() < kBufferBytes && !readInto(upstream_.get(), from_upstream_, upstream_ended_)) return broken();
  if (takeResponse()) moved = true;
  if (phase_ != Phase::http) return false;
  if (!to_client_.empty() && !flush(client_.get(), to_client_)) return broken();
  return moved;
}

bool Connection::takeRequest() {
  const http::RequestHead head = http::parseRequest(from_client_, pinned() ? target_.port() : 80);
  if (head.status == http::Status::more) {
    if (client_ended_) close(true);
    return false;
  }
  const auto refuse = [&](std::string_view flaw) {
    Request request;
    request.operation = "http";
    request.host = target_.host().text();
    request.port = target_.port();
    request.rule = "the request is refused: " + std::string(flaw);
    server_.report(std::move(request));
    answer(400, "Bad Request", "caisson: the request is refused: " + std::string(flaw) + "\n");
    return false;
  };
  if (head.status == http::Status::bad) return refuse(head.flaw);
  std::optional<Target> wanted = target_;
  if (head.has_authority) wanted = Target::resolve(server_.names, head.authority, target_.way());
  const bool same = head.has_authority && wanted && wanted->sameAs(target_);
  if (pinned()) {
    if (head.connect) return refuse("a CONNECT through a connection that is not a proxy");
    if (head.has_authority && !same) {
      denyObject(
          "http", wanted ? wanted->place() : head.authority,
          {false, "the request is for another host than the connection, which goes to " + target_.host().text(), {}});
      return false;
    }
  } else {
    if (!head.connect && !head.absolute) return refuse("the target names no host");
    if (head.connect || !same || !upstream_ready_ || upstream_ended_) {
      aimForRequest(head);
      return false;
    }
  }
  http::RequestHead final = head;
  final.authority = target_.place();  // also without a Host field, and for a synthetic address
  aimed_for_request_ = false;
  const Decision decision = judge();
  if (!decision.allowed) {
    deny("http", decision);
    return false;
  }
  to_upstream_ += http::rewriteForOrigin(final, {});
  request_body_ = http::BodyFramer(head.body);
  response_due_ = true;
  response_head_done_ = false;
  interim_ = {};
  head_request_ = head.method == "HEAD";
  websocket_ = head.websocket;
  keep_alive_ = head.keep_alive;
  from_client_.erase(0, head.used);
  return true;
}

void Connection::aimForRequest(const http::RequestHead& head) {
  const HostPort target = head.authority;
  if (head.connect) {
    from_client_.erase(0, head.used);
    return aim(target, Way::tunnel_request);
  }
  // Once for each request, however the connection ends.
  if (std::exchange(aimed_for_request_, true)) {
    return answer(502, "Bad Gateway", "caisson: cannot reach " + target.text() + "\n");
  }
  aim(target, Way::http);  // handles this request again once connected
}

bool Connection::takeResponse() {
  if (!response_due_) {
    if (!from_upstream_.empty()) close(true);  // a response without a request
    return false;
  }
  bool moved = false;
  while (!response_head_done_) {
    const http::ResponseHead head = http::parseResponse(from_upstream_, head_request_);
    if (head.status == http::Status::more) {
      if (upstream_ended_)
        answer(502, "Bad Gateway", "caisson: " + target_.host().text() + " ended without an answer\n");
      return moved;
    }
    const bool switching = head.code == 101;
    if (head.status == http::Status::bad || (switching && !websocket_)) {
      answer(502, "Bad Gateway", "caisson: the answer of " + target_.host().text() + " is malformed\n");
      return false;
    }
    if (switching) {
      to_client_ += from_upstream_;
      from_upstream_.clear();
      beginTunnel();
      return true;
    }
    const bool interim = head.code / 100 == 1;
    if (interim && !interim_.add(head.used)) {
      answer(502, "Bad Gateway", "caisson: " + target_.host().text() + " sent too many interim answers\n");
      return false;
    }
    if (!head.location.empty() && !judgeRedirect(head.location)) return false;
    to_client_.append(from_upstream_, 0, head.used);
    moved = true;
    if (!interim) {
      response_body_ = http::BodyFramer(head.body);
      response_head_done_ = true;
      keep_alive_ = keep_alive_ && head.keep_alive;
    }
    from_upstream_.erase(0, head.used);
  }
  const std::size_t used = response_body_.feed(from_upstream_);
  to_client_.append(from_upstream_, 0, used);
  from_upstream_.erase(0, used);
  if (response_body_.bad()) {
    close(true);
    return false;
  }
  const bool over = response_body_.done() || (response_body_.untilClose() && upstream_ended_);
  if (!over) {
    if (upstream_ended_ && from_upstream_.empty()) close(true);  // truncated
    return moved || used > 0;
  }
  const bool last = !keep_alive_ || response_body_.untilClose() || !request_body_.done();
  response_due_ = response_head_done_ = false;
  if (last) finishAfterFlush();
  return true;
}

bool Connection::judgeRedirect(std::string_view location) {
  const bool plain = http::sameName(location.substr(0, 7), "http://");
  const bool secure = http::sameName(location.substr(0, 8), "https://");
  if (!plain && !secure && !location.starts_with("//")) return true;  // on the same host
  std::string_view rest = location.substr(plain ? 7 : secure ? 8 : 2);
  rest = rest.substr(0, rest.find_first_of("/?#"));
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) rest.remove_prefix(at + 1);
  HostPort target;
  Decision decision{false, "a redirect to something that is not a host name", {}};
  if (auto parsed = canonicalAuthority(rest, secure ? 443 : 80)) {
    target = std::move(*parsed);
    const auto resolved = Target::resolve(server_.names, target, target_.way());
    decision = {false, "a redirect to an address that stands for no name", {}};
    if (resolved) {
      target = resolved->place();
      decision = server_.rules.judge(target.host, target.port);
    }
    if (decision.allowed && target.host.address) {
      decision = server_.judgeResolved(target.host, target.port, {}, {&*target.host.address, 1});
    }
  } else {
    target.host.name = "redirect";
  }
  // The user may be prompted for it, but only when the client connects there.
  if (decision.allowed || (server_.canAsk() && decision.askable)) return true;
  response_head_done_ = false;
  denyObject("redirect", target, decision);
  return false;
}

}  // namespace caisson::egress
