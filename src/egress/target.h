// The one canonical form of a connection's destination.
//
// A client can name one destination in several ways: by name, by the synthetic address of that name, by a real address.
// Every name that a client or a host gives (a SOCKS or CONNECT target, a URL, a Host field, a TLS server name, a
// redirect) is resolved to a Target before it is judged or compared, and only two of these are compared. Comparing a
// name with a synthetic address would treat one destination as two, and connect again for each request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "egress/host_name.h"
#include "egress/names.h"

namespace caisson::egress {

/// How the client named its target, which decides how it gets errors: captured: only a reset; tunnel_request: an HTTP
/// CONNECT; socks; http: requests in plain HTTP.
enum class Way : std::uint8_t { captured, tunnel_request, socks, http };

class Target {
 public:
  Target() = default;
  /// nullopt: the host is a synthetic address that stands for no name.
  static std::optional<Target> resolve(const SyntheticNames& names, const HostPort& named, Way way) {
    Target target;
    target.way_ = way;
    target.place_ = named;
    if (named.host.address && SyntheticNames::isSynthetic(*named.host.address)) {
      const std::string_view name = names.nameOf(*named.host.address);
      if (name.empty()) return std::nullopt;
      target.synthetic_ = named.host.address;
      target.place_.host = {std::string(name), std::nullopt};
    }
    return target;
  }

  /// A name, or an address that is not synthetic.
  [[nodiscard]] const Host& host() const { return place_.host; }
  [[nodiscard]] std::uint16_t port() const { return place_.port; }
  [[nodiscard]] const HostPort& place() const { return place_; }
  [[nodiscard]] Way way() const { return way_; }
  /// The synthetic address by which the client named the host, if it did.
  [[nodiscard]] const std::optional<Address>& synthetic() const { return synthetic_; }

  /// The same host and port, in whichever way each was named.
  [[nodiscard]] bool sameAs(const Target& other) const { return place_ == other.place_; }

 private:
  HostPort place_;
  std::optional<Address> synthetic_;
  Way way_ = Way::captured;
};

}  // namespace caisson::egress
