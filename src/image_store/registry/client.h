// The distribution API of one registry for one repository.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "approval/owner.h"
#include "base/error.h"
#include "image/model.h"
#include "image/reference.h"
#include "image_store/registry/auth.h"
#include "image_store/registry/http.h"

namespace caisson::image {

/// Where a repository can be reached.
struct Endpoint {
  std::string url;           ///< "https://registry-1.docker.io", without a final slash
  std::string host;          ///< for credentials and certificates: "docker.io", "localhost:5000"
  bool without_tls = false;  ///< only if the endpoint before it does not speak TLS
};

/// The addresses to try for a registry: its mirrors first (unless `for_push`), then itself. Without TLS only where the
/// configuration lists it and, if the server does not speak it, on this machine's loopback.
std::vector<Endpoint> endpointsFor(const std::string& host, const approval::ImageSettings& settings, bool for_push);

struct FetchedManifest {
  std::string text, media_type;
  ContentDigest digest;
};

/// What all threads of a pull or push share; each has its own RegistryClient.
struct RegistrySession {
  Endpoint endpoint;
  std::string repository;
  TlsFiles tls;
  Authorizer authorizer;

  RegistrySession(Endpoint where, std::string name, std::string actions)
      : endpoint(std::move(where)),
        repository(std::move(name)),
        tls(tlsFilesFor(endpoint.host)),
        authorizer(endpoint.host, repository, std::move(actions)) {}
};

class RegistryClient {
 public:
  explicit RegistryClient(RegistrySession& session) : session_(session), http_(session.tls, session.endpoint.url) {}

  /// `reference` is a tag or a digest, which is then checked.
  Result<FetchedManifest> manifest(const std::string& reference);
  /// Downloads the blob from `offset` on; `sink` gets its bytes, `restarted` is called if the server sends all of it.
  Result<void> blob(const Descriptor& wanted, std::uint64_t offset, const std::function<void()>& restarted,
                    const std::function<Result<void>(std::string_view)>& sink, const std::function<bool()>& cancelled);
  Result<bool> hasBlob(const ContentDigest& digest);
  Result<void> upload(const Descriptor& blob, int file, const std::function<void(std::uint64_t)>& sent);
  Result<void> putManifest(const std::string& reference, std::string_view media_type, const std::string& text);

 private:
  /// Sends the request; answers challenges, waits for rate limits, repeats after server errors.
  Result<HttpResponse> send(HttpRequest request);
  [[nodiscard]] std::string url(const std::string& rest) const {
    return session_.endpoint.url + "/v2/" + session_.repository + "/" + rest;
  }
  [[nodiscard]] Error unexpected(const HttpResponse& response, std::string_view what) const;

  RegistrySession& session_;
  HttpClient http_;
};

}  // namespace caisson::image
