// HTTP/1 between a client and a host that were both proved to be who they are: every request is read strictly, must be
// for the host, and goes on with the credential's fields in place of its own of that name.
//
//   exchange.fromClient(bytes); exchange.fromUpstream(bytes);      // decrypted
//   send(exchange.toUpstream()), send(exchange.toClient())         // and take off what went out
//
// Pure: it neither reads nor writes anything, so tests and a fuzzer drive it with any bytes.
// Guarantees: no field of a credential goes out before hostProved(), for another host, or more than once in a request;
// what two servers could read differently is refused, not passed on. A WebSocket goes on as bytes after the host
// agreed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "egress/http_body.h"
#include "egress/http_head.h"

namespace caisson::broker {

/// A field that is set in requests.
struct Injection {
  std::string_view name;  ///< of the credential, for records
  std::string_view header;
  std::string_view value;  ///< with the secret in it
  std::string_view secret;
};

class Exchange {
 public:
  struct Event {
    bool used = false;  ///< a request went out with `text`'s credential; else one was refused for this reason
    std::string text;
  };

  /// What `injections` point at outlives this.
  Exchange(egress::HostPort target, std::vector<Injection> injections);

  void fromClient(std::string_view bytes);
  void fromUpstream(std::string_view bytes);
  void clientEnded();
  void upstreamEnded();
  /// From now on requests go out.
  void hostProved();
  /// The host could not be reached as who it should be: requests are answered with 502 and this reason.
  void hostFailed(std::string_view reason);

  std::string& toClient() { return to_client_; }
  std::string& toUpstream() { return to_upstream_; }
  [[nodiscard]] bool wantsClient() const;
  [[nodiscard]] bool wantsUpstream() const;
  /// Bytes were taken off toClient() or toUpstream(): there may be room to go on.
  void advance();

  /// Nothing more will come of it but what is in toClient().
  [[nodiscard]] bool finished() const { return finished_; }
  /// The last bytes of a WebSocket for the host.
  [[nodiscard]] bool owesUpstream() const { return tunnel_ && !upstream_ended_ && !to_upstream_.empty(); }
  /// It must end at once, in the middle of a message, and visibly so.
  [[nodiscard]] bool broken() const { return broken_; }
  [[nodiscard]] std::vector<Event> takeEvents();

 private:
  bool passRequestBody();
  bool takeRequest();
  bool takeResponse();
  bool takeResponseHead();
  void sendRequest(const egress::http::RequestHead& head);
  void refuse(std::string_view flaw);
  void answer(int code, std::string_view reason, const std::string& text);
  void breakOff() { finished_ = broken_ = true; }
  [[nodiscard]] std::string withoutSecrets(std::string_view head) const;

  egress::HostPort target_;
  std::vector<Injection> injections_;
  std::string from_client_, to_client_, from_upstream_, to_upstream_;
  bool client_ended_ = false, upstream_ended_ = false;
  bool proved_ = false;
  std::string failure_;
  bool tunnel_ = false, finished_ = false, broken_ = false;
  bool response_due_ = false, response_head_done_ = false;
  bool head_request_ = false, websocket_ = false, keep_alive_ = true;
  egress::http::BodyFramer request_body_, response_body_;
  std::vector<Event> events_;
};

}  // namespace caisson::broker
