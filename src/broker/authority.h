// The sandbox's certificate authority: created in memory when the broker starts, trusted by one sandbox only, valid
// only for hosts with a credential, and gone when the broker exits.
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

/// An error with OpenSSL's description of the earliest failure in its queue, which is cleared.
Error tlsError(std::string_view call, std::string_view object);

class Authority {
 public:
  /// Creates a new key and certificate. `hosts`: the only names, with their subdomains, that its certificate allows it
  /// to sign for.
  static Result<Authority> make(const std::vector<std::string>& hosts, std::uint64_t lifetime_seconds);

  /// Its certificate as PEM, without the key.
  [[nodiscard]] Result<std::string> pem() const;
  /// TLS server context towards the client: a certificate for exactly this host, HTTP/1.1 only, no resumption.
  [[nodiscard]] Result<Context> serverFor(const std::string& host) const;

 private:
  Authority() = default;

  Key key_;
  Certificate certificate_;
  std::uint64_t lifetime_ = 0;
};

/// TLS client context towards hosts: accepts only certificates signed by one of `authorities` (PEM). The caller must
/// set the host name to check. Ignores everything after the first entry that is malformed.
Result<Context> clientTrusting(std::string_view authorities);

}  // namespace caisson::broker
