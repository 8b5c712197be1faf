// The sandbox's own certificate authority: made in memory at the broker's start, known to one sandbox only, good for
// the hosts with a credential and nothing else, gone with the broker.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

namespace caisson::broker {

template <auto kFree>
struct Free {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};

using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Context = std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>>;
using Tls = std::unique_ptr<SSL, Free<SSL_free>>;

/// What OpenSSL has to say about the last failure.
Error tlsError(std::string_view call, std::string_view object);

class Authority {
 public:
  /// `hosts`: the only names it can vouch for, by its own certificate.
  static Result<Authority> make(const std::vector<std::string>& hosts, std::uint64_t lifetime_seconds);

  [[nodiscard]] Result<std::string> pem() const;
  /// The broker's side towards the client: a certificate for exactly this host, HTTP/1.1 only, nothing resumed.
  [[nodiscard]] Result<Context> serverFor(const std::string& host) const;

 private:
  Authority() = default;

  Key key_;
  Certificate certificate_;
  std::uint64_t lifetime_ = 0;
};

/// The broker's side towards hosts: only who proves its name by one of `authorities` (PEM) is spoken to.
Result<Context> clientTrusting(std::string_view authorities);

}  // namespace caisson::broker
