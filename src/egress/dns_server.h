// The sandbox's resolver: allowed names get synthetic addresses, all others a negative response. Queries for names that
// are not allowed are never sent out.
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

  void serve(int datagrams, int listener);
  void onEvents(int descriptor, std::uint32_t events) override;
  void tick(Clock::time_point now);

 private:
  using Reply = std::function<void(const std::vector<std::uint8_t>&)>;
  class Stream;

  void onDatagrams();
  void accept();
  void handle(dns::Bytes message, const void* owner, const Reply& reply);
  void resolveFor(const dns::Question& question, const Host& host, const void* owner, const Reply& reply);
  void answerUnasked(const dns::Question& question, const std::string& name, const Reply& reply);
  void refuse(const dns::Question& question, const std::string& name, const Decision& decision, const Reply& reply);
  [[nodiscard]] std::string pointerFor(std::string_view name) const;

  Server& server_;
  int datagrams_ = -1, listener_ = -1;
  std::list<std::unique_ptr<Stream>> streams_;
};

}  // namespace caisson::egress
