#include "verify/egress_checks.h"

#include <algorithm>
#include <chrono>

#include "sys/host_program.h"
#include "verify/fake_internet.h"

namespace caisson::verify {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// Egress to every name of the small internet; `excepted` may have loopback addresses.
Settings egressTo(const std::string& excepted) {
  return {{"network.mode", "proxy"},
          {"network.dns_servers", "127.0.0.1"},
          {"network.allowed_hosts", ".verify.example"},
          {"network.private_hosts", excepted}};
}

Observed get(Context& context, const std::string& host, const std::string& path,
             const std::string& excepted = "site.verify.example") {
  return context.inside({"http", host, path}, egressTo(excepted));
}

constexpr std::string_view kAlways = "always blocked";

/// Passes if the egress denied it by this rule, to the program and in the denials. A connection that failed for another
/// reason proves nothing.
Verdict refusedByEgress(const Observed& seen, std::string_view object, std::string_view rule = kAlways) {
  if (!seen.ran) return failed(seen.describe());
  const bool on_record = std::ranges::any_of(seen.result.denials, [&](const Denial& denial) {
    return denial.object.find(object) != std::string::npos && denial.rule.find(rule) != std::string::npos;
  });
  if (seen.out.starts_with("status 403") && on_record) return passed();
  return failed(std::string(object) + " was not refused by egress: " + seen.describe());
}

Verdict servedBy(const Observed& seen, const std::string& address) {
  if (seen.ran && seen.out == "status 200: served by " + address + "\n") return passed();
  return failed("not served by " + address + ": " + seen.describe());
}

Result<sys::HostProgram> startOnHost(std::vector<std::string> command) {
  return sys::HostProgram::start({.arguments = std::move(command), .search_path = true, .inherit_environment = true});
}

Verdict tryNames(Context& context) {
  const Observed seen = context.script(
      "getent ahostsv4 site.verify.example >/dev/null && echo resolved; getent ahostsv4 elsewhere.example",
      egressTo("site.verify.example"));
  return seen.ran && seen.out == "resolved\n" ? passed() : failed(seen.describe());
}

Verdict tryHttp(Context& context) { return servedBy(get(context, "site.verify.example", "/"), "127.0.0.1"); }

/// Uses the host's programs on both ends: a server here, and inside a client that checks the certificate.
Verdict tryHttps(Context& context) {
  const std::string key = context.workspacePath() + "/key.pem", certificate = context.workspacePath() + "/server.crt";
  auto maker = startOnHost({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                            "-nodes", "-days", "2", "-subj", "/CN=site.verify.example", "-addext",
                            "subjectAltName=DNS:site.verify.example", "-keyout", key, "-out", certificate});
  if (!maker || maker->wait(std::chrono::seconds(30)) != 0) return skipped("openssl could not make a certificate");
  const auto server = startOnHost(
      {"openssl", "s_server", "-accept", "127.0.0.1:8443", "-key", key, "-cert", certificate, "-www", "-quiet"});
  if (!server) return failed(server.error().message());
  CheckRun wanted{
      .command = {"sh", "-c",
                  "for i in 1 2 3 4 5 6 7 8 9; do curl -s --max-time 5 --cacert /workspace/server.crt "
                  "https://site.verify.example:8443/ | grep -q s_server && echo spoke && exit; sleep 0.2; done"},
      .settings = egressTo("site.verify.example"),
      .workspace = true};
  wanted.settings.emplace_back("network.allowed_ports", "8443");  // an unprivileged port
  return printed(context.run(wanted), "spoke\n");
}

Verdict tryPrivate(Context& context) {
  for (const std::string host : {"inner.verify.example", "ten.verify.example"}) {
    if (Verdict verdict = refusedByEgress(get(context, host, "/"), host); verdict.state != CheckState::passed) {
      return verdict;
    }
  }
  return passed();
}

/// Must be blocked even with an exception.
Verdict tryMetadata(Context& context) {
  const std::string host = "metadata.verify.example";
  return refusedByEgress(get(context, host, "/", host), host);
}

Verdict tryAnswers(Context& context) {
  const Verdict first = servedBy(get(context, "flip.verify.example", "/", "flip.verify.example"), "127.0.0.1");
  if (first.state != CheckState::passed) return first;
  return refusedByEgress(get(context, "mixed.verify.example", "/"), "mixed.verify.example");
}

Verdict tryRedirects(Context& context) {
  const Verdict first = refusedByEgress(get(context, "site.verify.example", "/to-metadata"), "169.254.169.254", "");
  if (first.state != CheckState::passed) return first;
  return refusedByEgress(get(context, "site.verify.example", "/to-elsewhere"), "elsewhere.example", "allowed_hosts");
}

}  // namespace

Verdict namesResolve(Context& context) { return withFakeInternet(context, tryNames); }
Verdict httpWorks(Context& context) { return withFakeInternet(context, tryHttp); }
Verdict httpsWorks(Context& context) {
  for (const char* tool : {"openssl", "curl"}) {
    if (!hostHas(tool)) return skipped(std::string(tool) + " is not installed on this host");
  }
  return withFakeInternet(context, tryHttps);
}
Verdict privateRangesAreBlocked(Context& context) { return withFakeInternet(context, tryPrivate); }
Verdict metadataIsBlocked(Context& context) { return withFakeInternet(context, tryMetadata); }
Verdict checkedAddressIsUsed(Context& context) { return withFakeInternet(context, tryAnswers); }
Verdict redirectsAreCheckedAgain(Context& context) { return withFakeInternet(context, tryRedirects); }

}  // namespace caisson::verify
