#include "image_store/registry/http.h"

#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>

#include "base/text.h"
#include "image_store/registry/user_file.h"

namespace caisson::image {
namespace {

constexpr int kMaxRedirects = 5;
constexpr long kConnectSeconds = 20;
constexpr long kSlowBytes = 1024, kSlowSeconds = 60;  // slower than this for so long is an error
constexpr long kRequestSeconds = 6 * 3600;
constexpr std::uint64_t kMaxHeaders = 64U << 10;
constexpr std::size_t kMaxPem = 4U << 20;

/// What libcurl's callbacks share during one request.
struct Exchange {
  const HttpRequest* request;
  HttpResponse response;
  std::optional<Error> error;
  std::uint64_t received = 0, header_bytes = 0, offset = 0;
  CURL* handle;
};

std::size_t onHeader(char* data, std::size_t, std::size_t size, void* self) {
  auto& exchange = *static_cast<Exchange*>(self);
  exchange.header_bytes += size;
  if (exchange.header_bytes > kMaxHeaders) return 0;
  const std::string_view line = trimmed({data, size}, " \t\r\n");
  if (line.starts_with("HTTP/")) exchange.response.headers.clear();
  const std::size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    exchange.response.headers[lowered(line.substr(0, colon))] = trimmed(line.substr(colon + 1));
  }
  return size;
}

std::size_t onBody(char* data, std::size_t, std::size_t size, void* self) {
  auto& exchange = *static_cast<Exchange*>(self);
  long status = 0;
  curl_easy_getinfo(exchange.handle, CURLINFO_RESPONSE_CODE, &status);
  const bool good = status == 200 || status == 206;
  const std::uint64_t most = good ? exchange.request->max_bytes : kMaxHeaders;
  exchange.received += size;
  if (exchange.received > most) {
    if (!good) return size;  // the rest of an error page
    exchange.error =
        plainError(Stage::state, "registry", exchange.request->url, "the response is larger than expected");
    return 0;
  }
  if (!good || !exchange.request->sink) {
    exchange.response.body.append(data, size);
    return size;
  }
  auto taken = exchange.request->sink(status, {data, size});
  if (taken) return size;
  exchange.error = taken.error();
  return 0;
}

std::size_t onUpload(char* to, std::size_t, std::size_t size, void* self) {
  auto& exchange = *static_cast<Exchange*>(self);
  if (exchange.request->upload < 0) {
    const std::string_view rest = std::string_view(exchange.request->body).substr(exchange.offset);
    const std::size_t count = std::min(size, rest.size());
    std::copy_n(rest.data(), count, to);
    exchange.offset += count;
    return count;
  }
  const ssize_t got = ::pread(exchange.request->upload, to, size, static_cast<off_t>(exchange.offset));
  if (got < 0) return CURL_READFUNC_ABORT;
  exchange.offset += static_cast<std::uint64_t>(got);
  if (exchange.request->sent) exchange.request->sent(exchange.offset);
  return static_cast<std::size_t>(got);
}

int onSeek(void* self, curl_off_t offset, int origin) {
  if (origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
  static_cast<Exchange*>(self)->offset = static_cast<std::uint64_t>(offset);
  return CURL_SEEKFUNC_OK;
}

int onProgress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto* cancelled = static_cast<Exchange*>(self)->request->cancelled;
  return cancelled != nullptr && (*cancelled)() ? 1 : 0;
}

Error transferError(CURLcode code, const char* text, const std::string& url) {
  const std::string reason = text[0] != '\0' ? text : curl_easy_strerror(code);
  std::string hint;
  if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CONNECT_ERROR) {
    hint =
        "a private registry: put its CA certificate into /etc/docker/certs.d/HOST:PORT/ca.crt, or list a registry "
        "without TLS in images.plain_http of the configuration";
  }
  Error error = plainError(Stage::state, "registry", originOf(url), printable(reason, 300), hint);
  if (code == CURLE_SSL_CONNECT_ERROR) error.sys_errno = kNoTls;
  return error;
}

std::string readSmall(const std::filesystem::path& path) { return readUserFile(path, kMaxPem).value_or(""); }

void applyTls(CURL* handle, const TlsFiles& tls) {
  if (!tls.authorities.empty()) {
    static const std::string system = readSmall("/etc/ssl/certs/ca-certificates.crt");
    std::string all = system + "\n" + tls.authorities;
    const curl_blob blob{all.data(), all.size(), CURL_BLOB_COPY};
    curl_easy_setopt(handle, CURLOPT_CAINFO_BLOB, &blob);
  }
  if (!tls.certificate.empty()) {
    curl_easy_setopt(handle, CURLOPT_SSLCERT, tls.certificate.c_str());
    curl_easy_setopt(handle, CURLOPT_SSLKEY, tls.key.c_str());
  }
  curl_easy_setopt(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
}

void applyLimits(CURL* handle, Exchange& exchange, char* error_text) {
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, error_text);
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, kSlowBytes);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, kSlowSeconds);
  curl_easy_setopt(handle, CURLOPT_TIMEOUT, kRequestSeconds);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "caisson");
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, onHeader);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, onBody);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, onProgress);
  curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &exchange);
}

void applyMethod(CURL* handle, const HttpRequest& request, Exchange& exchange) {
  if (request.method == "HEAD") {
    curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
  } else if (request.method != "GET") {
    const bool file = request.upload >= 0;
    curl_easy_setopt(handle, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    curl_easy_setopt(handle, CURLOPT_READFUNCTION, onUpload);
    curl_easy_setopt(handle, CURLOPT_READDATA, &exchange);
    curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, onSeek);
    curl_easy_setopt(handle, CURLOPT_SEEKDATA, &exchange);
    curl_easy_setopt(handle, CURLOPT_INFILESIZE_LARGE,
                     static_cast<curl_off_t>(file ? request.upload_size : request.body.size()));
  }
}

}  // namespace

std::string originOf(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return "";
  std::string_view rest = url.substr(scheme + 3);
  rest = rest.substr(0, rest.find_first_of("/?#"));
  if (const std::size_t user = rest.rfind('@'); user != std::string_view::npos) rest.remove_prefix(user + 1);
  std::string origin = lowered(url.substr(0, scheme + 3)) + lowered(rest);
  const std::string_view standard = origin.starts_with("https") ? ":443" : ":80";
  if (origin.ends_with(standard)) origin.resize(origin.size() - standard.size());
  return origin;
}

std::string resolveUrl(const std::string& base, const std::string& location) {
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url(curl_url(), curl_url_cleanup);
  char* whole = nullptr;
  if (curl_url_set(url.get(), CURLUPART_URL, base.c_str(), 0) != CURLUE_OK ||
      curl_url_set(url.get(), CURLUPART_URL, location.c_str(), 0) != CURLUE_OK ||
      curl_url_get(url.get(), CURLUPART_URL, &whole, 0) != CURLUE_OK) {
    return "";
  }
  std::string result(whole);
  curl_free(whole);
  return result;
}

std::chrono::seconds retryAfter(const HttpResponse& response, std::chrono::seconds otherwise) {
  const std::string text = response.header("retry-after");
  if (text.empty()) return otherwise;
  long seconds = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), seconds).ptr == text.data() + text.size()) {
    return std::chrono::seconds(std::max(seconds, 0L));
  }
  const std::time_t date = curl_getdate(text.c_str(), nullptr);
  return date < 0 ? otherwise : std::chrono::seconds(std::max<long>(0, date - std::time(nullptr)));
}

TlsFiles tlsFilesFor(const std::string& host) {
  namespace fs = std::filesystem;
  TlsFiles files;
  if (host.empty() || host.starts_with('.')) return files;  // a server may have chosen it: "..", for example
  std::vector<fs::path> directories{"/etc/docker/certs.d", "/etc/containers/certs.d"};
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    directories.emplace_back(std::string(home) + "/.config/containers/certs.d");
    directories.emplace_back(std::string(home) + "/.config/docker/certs.d");
  }
  for (const fs::path& directory : directories) {
    std::error_code problem;
    for (const auto& entry : fs::directory_iterator(directory / host, problem)) {
      const fs::path& path = entry.path();
      if (path.extension() == ".crt") files.authorities += readSmall(path) + "\n";
      if (path.extension() != ".cert") continue;
      files.certificate = path.string();
      files.key = fs::path(path).replace_extension(".key").string();
    }
  }
  return files;
}

HttpClient::HttpClient(TlsFiles tls, std::string_view url) : handle_(curl_easy_init()) {
  tls_.emplace(originOf(url), std::move(tls));
}

HttpClient::~HttpClient() { curl_easy_cleanup(static_cast<CURL*>(handle_)); }

const TlsFiles& HttpClient::tlsFor(const std::string& origin) {
  const auto known = tls_.find(origin);
  if (known != tls_.end()) return known->second;
  const std::size_t scheme = origin.find("://");
  return tls_.emplace(origin, tlsFilesFor(scheme == std::string::npos ? "" : origin.substr(scheme + 3))).first->second;
}

Result<HttpResponse> HttpClient::once(const HttpRequest& request, const std::string& url, bool with_authorization) {
  auto* handle = static_cast<CURL*>(handle_);
  if (handle == nullptr) return fail(plainError(Stage::state, "registry", url, "libcurl cannot be initialised"));
  curl_easy_reset(handle);
  Exchange exchange{.request = &request, .handle = handle};
  char error_text[CURL_ERROR_SIZE] = "";
  applyLimits(handle, exchange, error_text);
  applyTls(handle, tlsFor(originOf(url)));
  applyMethod(handle, request, exchange);
  curl_easy_setopt(handle, CURLOPT_URL, url.c_str());
  curl_slist* raw = curl_slist_append(nullptr, "Expect:");
  for (const std::string& header : request.headers) raw = curl_slist_append(raw, header.c_str());
  if (with_authorization && !request.authorization.empty()) {
    raw = curl_slist_append(raw, ("Authorization: " + request.authorization).c_str());
  }
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(raw, curl_slist_free_all);
  curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
  const CURLcode code = curl_easy_perform(handle);
  if (exchange.error) return fail(*exchange.error);
  if (code != CURLE_OK) return fail(transferError(code, error_text, url));
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &exchange.response.status);
  exchange.response.url = url;
  return std::move(exchange.response);
}

Result<HttpResponse> HttpClient::perform(const HttpRequest& request) {
  std::string url = request.url;
  bool same_origin = true;
  for (int step = 0; step <= kMaxRedirects; ++step) {
    auto response = once(request, url, same_origin);
    if (!response) return response;
    const bool redirect = response->status == 301 || response->status == 302 || response->status == 303 ||
                          response->status == 307 || response->status == 308;
    if (!redirect || (request.method != "GET" && request.method != "HEAD")) return response;
    const std::string next = resolveUrl(url, response->header("location"));
    if (next.empty() || (url.starts_with("https:") && !next.starts_with("https:"))) {
      return fail(plainError(Stage::state, "registry", originOf(url), "redirects to an address without TLS"));
    }
    // Once the chain left the registry, it gets no credentials even if it comes back.
    same_origin = same_origin && originOf(next) == originOf(request.url);
    url = next;
  }
  return fail(plainError(Stage::state, "registry", originOf(request.url), "too many redirects"));
}

}  // namespace caisson::image
