// HTTP requests to registries, by libcurl. Every request has limits on time, speed and size.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson::image {

/// Scheme, host and port of an address: what a credential may be sent to.
std::string originOf(std::string_view url);

/// The errno of an error because the server does not speak TLS.
inline constexpr int kNoTls = EPROTO;

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers;  ///< "Name: value"
  std::string authorization;         ///< dropped at a redirect to another origin
  std::string body;
  int upload = -1;  ///< a file as the body, instead of `body`
  std::uint64_t upload_size = 0;
  std::uint64_t max_bytes = 4U << 20;  ///< of the response's body
  /// Receives the body of a response with status 200 or 206; otherwise and without it the body is in HttpResponse.
  std::function<Result<void>(long status, std::string_view piece)> sink;
  std::function<void(std::uint64_t sent)> sent;
  const std::function<bool()>* cancelled = nullptr;
};

struct HttpResponse {
  long status = 0;
  std::map<std::string, std::string> headers;  ///< names in lower case; the last of several counts
  std::string body;
  std::string url;  ///< after redirects

  [[nodiscard]] std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

struct TlsFiles {
  std::string authorities;  ///< PEM text of certificates to trust besides the system's
  std::string certificate, key;
};

/// One connection at a time; use one object per thread.
class HttpClient {
 public:
  /// `tls` is for `url`, which names the registry. Other hosts, which a redirect or the registry names, have files of
  /// their own in certs.d, or none: a client certificate identifies the user, and a private authority could vouch for
  /// any host.
  HttpClient(TlsFiles tls, std::string_view url);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Follows at most 5 redirects of GET and HEAD, never from https to http. An error if no response arrived.
  Result<HttpResponse> perform(const HttpRequest& request);

 private:
  Result<HttpResponse> once(const HttpRequest& request, const std::string& url, bool with_authorization);

  const TlsFiles& tlsFor(const std::string& origin);

  std::map<std::string, TlsFiles> tls_;  ///< by origin
  void* handle_;
};

/// The files of certs.d for HOST[:PORT], as docker and podman have them; empty if there are none.
TlsFiles tlsFilesFor(const std::string& host);

/// How long the server demands to wait (429, 503): Retry-After in seconds or as a date; `otherwise` without it.
std::chrono::seconds retryAfter(const HttpResponse& response, std::chrono::seconds otherwise);

/// `location` as an absolute address, relative to `base`.
std::string resolveUrl(const std::string& base, const std::string& location);

}  // namespace caisson::image
