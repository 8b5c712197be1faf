// HTTP/1 between an authenticated client and an authenticated host: parses every request strictly, requires that it is
// for the host, and replaces the credential's header fields.
//
//   exchange.fromClient(bytes); exchange.fromUpstream(bytes);      // decrypted
//   send(exchange.toUpstream()), send(exchange.toClient())         // and remove what was sent
//
// Pure: performs no I/O, so tests and a fuzzer can drive it with any bytes.
// Guarantees: a credential is never sent before hostProved(), to another host, or more than once per request. Input
// that two servers could interpret differently is denied, not forwarded. A WebSocket continues as frames after the
// host has accepted it, without extensions such as compression.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "broker/mask.h"
#include "egress/http_body.h"
#include "egress/http_head.h"

namespace caisson::broker {

/// A header field to set in requests.
struct Injection {
  std::string_view name;  ///< of the credential, for records
  std::string_view header;
  std::string_view value;  ///< including the secret
  std::string_view secret;
};

class Exchange {
 public:
  struct Event {
    bool used = false;  ///< a request was sent with the credential `text`; else `text` is why one was denied
    std::string text;
  };

  /// The memory that `injections` refer to must outlive this object.
  Exchange(egress::HostPort target, std::vector<Injection> injections);

  /// Decrypted bytes that arrived. Both functions forward what they can to the two output buffers.
  void fromClient(std::string_view bytes);
  void fromUpstream(std::string_view bytes);
  /// The client, or the host, has closed its side. A message that is cut off by this ends in broken(); if no complete
  /// response head arrived, the client gets a 502.
  void clientEnded();
  void upstreamEnded();
  /// Allows requests to be sent from now on.
  void hostProved();
  /// The host could not be reached or authenticated: requests get a 502 with this reason.
  void hostFailed(std::string_view reason);

  std::string& toClient() { return to_client_; }
  std::string& toUpstream() { return to_upstream_; }
  /// Whether to read from the client (the host) now; false while buffers are full. The host is not read before
  /// hostProved().
  [[nodiscard]] bool wantsClient() const;
  [[nodiscard]] bool wantsUpstream() const;
  /// Forwards what is possible. Call after removing bytes from toClient() or toUpstream(): there may be room to
  /// continue.
  void advance();

  /// Only the content of toClient() remains to be sent.
  [[nodiscard]] bool finished() const { return finished_; }
  /// Whether the last bytes of a WebSocket must still be sent to the host.
  [[nodiscard]] bool owesUpstream() const { return tunnel_ && !upstream_ended_ && !to_upstream_.empty(); }
  /// The connection must be closed at once, in the middle of a message and visibly.
  [[nodiscard]] bool broken() const { return broken_; }
  /// Returns the events since the last call.
  [[nodiscard]] std::vector<Event> takeEvents();

 private:
  /// Forwards available bytes of the request's body; true if there were any.
  bool passRequestBody();
  /// Checks and forwards the next request's head. False: it is incomplete, waits for the host's handshake, or was
  /// answered with an error.
  bool takeRequest();
  /// Forwards what is available of the response; true if that was something. Breaks off if there was no request or the
  /// body is malformed.
  bool takeResponse();
  /// Forwards one complete response head, interim ones included, with secrets masked. False: it is incomplete, or the
  /// client got a 502.
  bool forwardResponseHead();
  /// Forwards a checked head with the credential's header fields in place of the client's.
  void sendRequest(const egress::http::RequestHead& head);
  /// Records a denied request and answers it with 400.
  void refuse(std::string_view flaw);
  /// Sends a response of our own and finishes. In the middle of another response, breaks off instead.
  void answer(int code, std::string_view reason, const std::string& text);
  /// Ends the exchange so that the connection is closed at once; see broken().
  void breakOff() { finished_ = broken_ = true; }

  egress::HostPort target_;
  std::vector<Injection> injections_;
  std::string from_client_, to_client_, from_upstream_, to_upstream_;
  bool client_ended_ = false, upstream_ended_ = false;
  bool proved_ = false;                                      ///< see hostProved()
  std::string failure_;                                      ///< why the host failed; empty: it did not
  bool tunnel_ = false, finished_ = false, broken_ = false;  ///< tunnel_: an accepted WebSocket, forwarded as raw bytes
  bool response_due_ = false, response_head_done_ = false;   ///< request sent; final response head forwarded
  bool head_request_ = false, websocket_ = false, keep_alive_ = true;  ///< of the current request
  egress::http::BodyFramer request_body_, response_body_;
  egress::http::InterimCount interim_;     ///< responses to the current request
  std::vector<std::string_view> secrets_;  ///< masked in response heads, trailers and WebSocket frames; not in bodies
  std::string trailers_;                   ///< of the response, as far as they arrived
  FrameMasker frames_;                     ///< of an accepted WebSocket
  std::vector<Event> events_;
};

}  // namespace caisson::broker
