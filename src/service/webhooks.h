// Delivers lifecycle events to the addresses that the owner configured.
//
// Each delivery is a POST of one event, signed: X-Caisson-Signature is "sha256=" and the HMAC of the body, and the time
// is in the body, so a receiver can reject forged and replayed ones. Sent by the host's curl, which has the TLS,
// proxies and certificates of this host. Deliveries that fail three times are dropped.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "service/events.h"
#include "service/settings.h"

namespace caisson::service {

class Webhooks {
 public:
  Webhooks(Events& events, std::vector<Webhook> hooks);
  ~Webhooks();
  Webhooks(const Webhooks&) = delete;
  Webhooks& operator=(const Webhooks&) = delete;

 private:
  void work();

  Events& events_;
  std::vector<Webhook> hooks_;
  /// Shared with the subscription: an event may still be announced while this is destroyed.
  struct Signal {
    std::mutex mutex;
    std::condition_variable changed;
    bool ending = false, pending = false;
  };
  std::shared_ptr<Signal> signal_ = std::make_shared<Signal>();
  std::shared_ptr<void> subscription_;
  std::thread thread_;
};

/// HMAC-SHA256 in hexadecimal.
std::string hmacSha256(std::string_view key, std::string_view text);

}  // namespace caisson::service
