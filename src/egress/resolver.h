// Resolves names that were already checked, through the configured servers; caches responses for their TTL, but at
// least 5 and at most 300 seconds.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "egress/dns_message.h"
#include "egress/loop.h"
#include "egress/sockets.h"

namespace caisson::egress {

struct Resolution {
  bool failed = false;                    ///< no server gave a usable answer
  std::vector<std::string> aliases = {};  ///< names that the name led to, on the way to the addresses
  std::vector<Address> addresses = {};    ///< empty without `failed`: the name does not exist, or has no address
};

class Resolver {
 public:
  using Callback = std::function<void(const Resolution&)>;

  Resolver(Loop& loop, std::vector<Address> servers);
  ~Resolver();

  /// Calls back at once if the result is cached, otherwise later, and with `failed` after four attempts of 1.5 seconds.
  /// `owner` identifies the call for cancel().
  void resolve(const std::string& name, const void* owner, Callback callback);
  /// Drops the callbacks of this owner; the lookup itself continues.
  void cancel(const void* owner);
  /// Whether resolve() would answer from the cache.
  [[nodiscard]] bool knows(const std::string& name) const;
  /// Handles retries and timeouts; call it a few times a second while busy().
  void tick(Clock::time_point now);
  [[nodiscard]] bool busy() const { return !lookups_.empty(); }

  static constexpr std::uint16_t kPort = 53;

 private:
  class Lookup;
  struct Known {
    Resolution resolution;
    Clock::time_point until;
  };

  /// Caches the result of a lookup, unless it failed, and calls everyone who waits for it.
  void finish(Lookup* lookup, Resolution resolution, std::uint32_t ttl);

  Loop& loop_;
  std::vector<Address> servers_;
  std::unordered_map<std::string, Known> known_;
  std::unordered_map<std::string, std::unique_ptr<Lookup>> lookups_;
  std::vector<std::unique_ptr<Lookup>> ended_;  // kept until the next tick: their code may still be running
};

}  // namespace caisson::egress
