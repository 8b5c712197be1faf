#include "image_store/registry/client.h"

#include <arpa/inet.h>
#include <poll.h>

#include <algorithm>

#include "base/json_value.h"
#include "base/text.h"

namespace caisson::image {
namespace {

constexpr int kMaxAttempts = 5;
constexpr int kMaxChallenges = 2;
constexpr auto kMaxWait = std::chrono::seconds(60);

bool isLoopback(std::string_view host) {
  const std::string name(host.starts_with('[') ? host.substr(0, host.find(']') + 1) : host.substr(0, host.find(':')));
  if (name == "localhost" || name == "[::1]") return true;
  in_addr address{};  // 127.example.org is a name of anyone
  return ::inet_pton(AF_INET, name.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24U == 127;
}

/// Sleeps; the user can interrupt the process meanwhile.
void pause(std::chrono::seconds time) { ::poll(nullptr, 0, static_cast<int>(std::chrono::milliseconds(time).count())); }

/// What the registry says about an error, as one line.
std::string explanation(const HttpResponse& response) {
  const auto body = JsonValue::parse(response.body);
  const auto errors = body ? body->find("errors") : std::nullopt;
  const auto items = errors ? errors->items() : std::vector<JsonValue>{};
  if (items.empty()) return "";
  return ": " + printable(items[0].textAt("message").value_or(items[0].textAt("code").value_or("")), 200);
}

}  // namespace

std::vector<Endpoint> endpointsFor(const std::string& host, const approval::ImageSettings& settings, bool for_push) {
  std::vector<Endpoint> list;
  for (const auto& [mirrored, url] : settings.mirrors) {
    if (mirrored != host || for_push) continue;
    const std::string plain = url.ends_with('/') ? url.substr(0, url.size() - 1) : url;
    const std::string origin = originOf(plain);
    list.push_back({plain, origin.substr(origin.find("://") + 3)});
  }
  const std::string address = host == "docker.io" ? "registry-1.docker.io" : host;
  const bool without_tls = std::ranges::find(settings.plain_http, host) != settings.plain_http.end();
  if (!without_tls) list.push_back({"https://" + address, host});
  if (without_tls || isLoopback(host)) list.push_back({"http://" + address, host, !without_tls});
  return list;
}

Error RegistryClient::unexpected(const HttpResponse& response, std::string_view what) const {
  std::string reason = "the registry answered " + std::to_string(response.status) + explanation(response);
  if (response.status == 404) reason = "not found in the registry" + explanation(response);
  if (response.status == 429) reason = "the registry's rate limit is reached" + explanation(response);
  return plainError(Stage::state, "registry",
                    session_.endpoint.host + "/" + session_.repository + ": " + std::string(what), reason);
}

Result<HttpResponse> RegistryClient::send(HttpRequest request) {
  int challenges = 0;
  for (int attempt = 1;; ++attempt) {
    request.authorization =
        originOf(request.url) == originOf(session_.endpoint.url) ? session_.authorizer.current() : "";
    auto response = http_.perform(request);
    if (!response) return response;
    // A challenge names the server that gets the password. One of a host that a redirect or an upload led to does not
    // speak for the registry.
    const bool of_registry = originOf(response->url) == originOf(session_.endpoint.url);
    if (response->status == 401 && of_registry && ++challenges <= kMaxChallenges) {
      if (auto answered = session_.authorizer.answer(http_, *response, request.authorization); !answered)
        return fail(answered.error());
      continue;
    }
    const bool limited = response->status == 429 || response->status == 503;
    const bool broken = response->status == 500 || response->status == 502 || response->status == 504;
    if ((!limited && !broken) || attempt == kMaxAttempts) return response;
    const auto wait = retryAfter(*response, std::chrono::seconds(1 << (attempt - 1)));
    if (wait > kMaxWait) {
      return fail(plainError(Stage::state, "registry", session_.endpoint.host,
                             "the registry asks to wait " + std::to_string(wait.count()) + " s (rate limit)",
                             "try again later"));
    }
    pause(wait);
  }
}

Result<FetchedManifest> RegistryClient::manifest(const std::string& reference) {
  std::string accept = "Accept: ";
  for (const std::string_view type : {kOciManifest, kOciIndex, kDockerManifest, kDockerList})
    accept += std::string(type) + ", ";
  accept.resize(accept.size() - 2);
  const auto response = send({.url = url("manifests/" + reference), .headers = {accept}, .max_bytes = kMaxDocument});
  if (!response) return fail(response.error());
  if (response->status != 200) return fail(unexpected(*response, reference));
  const ContentDigest digest = ContentDigest::of(response->body);
  const auto expected = ContentDigest::parse(reference);
  const auto stated = ContentDigest::parse(response->header("docker-content-digest"));
  if ((expected && *expected != digest) || (stated && *stated != digest)) {
    return fail(plainError(Stage::state, "registry", reference, "the manifest has another digest: " + digest.text(),
                           "the registry or a proxy changed it"));
  }
  return FetchedManifest{response->body, documentType(response->body), digest};
}

Result<void> RegistryClient::blob(const Descriptor& wanted, std::uint64_t offset,
                                  const std::function<void()>& restarted,
                                  const std::function<Result<void>(std::string_view)>& sink,
                                  const std::function<bool()>& cancelled) {
  HttpRequest request{.url = url("blobs/" + wanted.digest.text()), .max_bytes = wanted.size, .cancelled = &cancelled};
  if (offset > 0) request.headers.push_back("Range: bytes=" + std::to_string(offset) + "-");
  bool first = true;
  request.sink = [&](long status, std::string_view piece) -> Result<void> {
    if (first && status == 200 && offset > 0) restarted();
    first = false;
    return sink(piece);
  };
  const auto response = send(std::move(request));
  if (!response) return fail(response.error());
  if (response->status != 200 && response->status != 206) return fail(unexpected(*response, wanted.digest.text()));
  return {};
}

Result<bool> RegistryClient::hasBlob(const ContentDigest& digest) {
  const auto response = send({.method = "HEAD", .url = url("blobs/" + digest.text())});
  if (!response) return fail(response.error());
  if (response->status == 200) return true;
  if (response->status == 404) return false;
  return fail(unexpected(*response, digest.text()));
}

Result<void> RegistryClient::upload(const Descriptor& blob, int file, const std::function<void(std::uint64_t)>& sent) {
  const auto begun = send({.method = "POST", .url = url("blobs/uploads/")});
  if (!begun) return fail(begun.error());
  if (begun->status != 202) return fail(unexpected(*begun, "upload"));
  const std::string location = resolveUrl(begun->url, begun->header("location"));
  if (location.empty() || (begun->url.starts_with("https:") && !location.starts_with("https:"))) {
    return fail(plainError(Stage::state, "registry", session_.endpoint.host, "names no address for the upload"));
  }
  const auto done =
      send({.method = "PUT",
            .url = location + (location.find('?') == std::string::npos ? "?" : "&") + "digest=" + blob.digest.text(),
            .headers = {"Content-Type: application/octet-stream"},
            .upload = file,
            .upload_size = blob.size,
            .sent = sent});
  if (!done) return fail(done.error());
  return done->status == 201 ? Result<void>{} : fail(unexpected(*done, blob.digest.text()));
}

Result<void> RegistryClient::putManifest(const std::string& reference, std::string_view media_type,
                                         const std::string& text) {
  const auto response = send({.method = "PUT",
                              .url = url("manifests/" + reference),
                              .headers = {"Content-Type: " + std::string(media_type)},
                              .body = text});
  if (!response) return fail(response.error());
  return response->status == 201 || response->status == 200 ? Result<void>{} : fail(unexpected(*response, reference));
}

}  // namespace caisson::image
