// The sandbox's resolver: allowed names, and those that the user can be prompted for, get synthetic addresses, all
// others a negative response. Queries for names that are not allowed are never sent out.
#pragma once

#include <netinet/in.h>

#include <list>
#include <memory>
#include <string>

#include "egress/dns_message.h"
#include "egress/server.h"

namespace caisson::egress {

class DnsServer final : public Watcher {
 public:
  explicit DnsServer(Server& server);
  ~DnsServer();

  /// Serves DNS by UDP at `datagrams` and by TCP at `listener` (-1: none). The caller keeps owning both.
  void serve(int datagrams, int listener);
  void onEvents(int descriptor, std::uint32_t events) override;
  /// Closes TCP connections that are older than ten seconds.
  void tick(Clock::time_point now);

 private:
  using Reply = std::function<void(const std::vector<std::uint8_t>&)>;
  class Stream;

  /// The UDP socket is readable: handles up to 32 queries.
  void onDatagrams();
  /// Accepts one TCP connection; resets it if there are 16 already.
  void accept();
  /// Handles one query and calls `reply`, at once or later. `owner` identifies it for Resolver::cancel().
  void handle(dns::Bytes message, const void* owner, const Reply& reply);
  /// For an allowed name: looks it up, and replies with its synthetic address if it exists and none of its addresses is
  /// blocked.
  void resolveFor(const dns::Question& question, const Host& host, const void* owner, const Reply& reply);
  /// For a name that the user can be prompted for: replies with a synthetic IPv4 address, or with no record for other
  /// types, and sends no query. The prompt comes when the program connects, since no resolver waits that long.
  void answerUnasked(const dns::Question& question, const std::string& name, const Reply& reply);
  /// Reports the denied name and replies that it does not exist, with the reason as an extended error.
  void refuse(const dns::Question& question, const std::string& name, const Decision& decision, const Reply& reply);
  /// The name behind a synthetic address, for "1.0.18.198.in-addr.arpa"; else "". Only IPv4, since programs rarely use
  /// the other.
  [[nodiscard]] std::string pointerFor(std::string_view name) const;

  Server& server_;
  int datagrams_ = -1, listener_ = -1;
  std::list<std::unique_ptr<Stream>> streams_;
};

}  // namespace caisson::egress
