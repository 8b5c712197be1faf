#include "supervise/alert.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "approval/owner.h"
#include "audit/chain.h"
#include "sys/fd.h"
#include "sys/host_program.h"

namespace caisson::supervise {
namespace {

using sys::Fd;

constexpr std::chrono::seconds kTimeout{10};

std::string asJson(const audit::Event& event) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  audit::Fields alert;
  alert.text("time", audit::timeText(static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec));
  alert.text("event", name(event.type)).text("severity", name(event.severity)).text("sandbox", event.sandbox);
  return alert.raw("data", event.fields.json()).json() + "\n";
}

/// A memory file rather than a pipe: a program that does not read can't block us.
Fd inputOf(const std::string& text) {
  Fd file(::memfd_create("caisson-alert", MFD_CLOEXEC));
  if (file && ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) file.reset();
  if (file) ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

std::string ended(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status) == 0 ? "" : "exit status " + std::to_string(WEXITSTATUS(status));
  return "signal " + std::to_string(WTERMSIG(status));
}

/// The descriptor on which a program gets confidential input.
constexpr int kConfidence = 3;
constexpr const char* kConfidencePath = "/proc/self/fd/3";

/// Runs the program with the text as its standard input; returns an error text, or "". `in_confidence` is readable at
/// kConfidencePath: arguments are visible to every user of the host.
std::string tellProgram(const std::vector<std::string>& command, const std::string& text,
                        const std::string& in_confidence = {}) {
  const Fd input = inputOf(text);
  const Fd confidence = inputOf(in_confidence);
  if (!input || !confidence) return "no memory for its input";
  sys::HostProgramOptions options{.arguments = command,
                                  .search_path = true,
                                  .inherit_environment = true,
                                  .descriptors = {{input.get(), STDIN_FILENO}}};
  if (!in_confidence.empty()) options.descriptors.push_back({confidence.get(), kConfidence});
  auto program = sys::HostProgram::start(options);
  if (!program) return program.error().message();
  const auto status = program->wait(kTimeout);
  return status ? ended(*status) : "it did not end within ten seconds";
}

/// Scheme and host of an address, for messages: the rest is often a secret.
std::string placeOf(const std::string& address) {
  const std::size_t begin = address.find("://") + 3;
  const std::size_t end = std::min(address.find_first_of("/?#", begin), address.size());
  const std::size_t user = address.rfind('@', end);
  const std::size_t host = user != std::string::npos && user >= begin ? user + 1 : begin;
  return address.substr(0, begin) + address.substr(host, end - host);
}

/// A line of a curl configuration file.
std::string curlSetting(std::string_view key, std::string_view value) {
  std::string line = std::string(key) + " = \"";
  for (const char letter : value) {
    if (letter == '"' || letter == '\\') line += '\\';
    line += letter;
  }
  return line + "\"\n";
}

/// Uses the host's curl, which has TLS, proxies and certificates as configured on this host.
std::string tellWebhook(const std::string& address, const std::string& text) {
  std::string problem =
      tellProgram({"curl", "--silent", "--fail", "--max-time", "9", "--proto", "=http,https", "--header",
                   "Content-Type: application/json", "--data-binary", "@-", "--config", kConfidencePath},
                  text, curlSetting("url", address));
  return problem.empty() ? "" : "curl " + placeOf(address) + ": " + problem;
}

}  // namespace

std::vector<std::string> sendAlert(const std::string& text) {
  std::vector<std::string> problems;
  const auto owner = approval::loadOwner();
  if (!owner) problems.push_back(owner.error().message());
  for (const approval::Alert& alert : owner ? owner->alerts : std::vector<approval::Alert>{}) {
    if (!alert.command.empty()) {
      if (std::string problem = tellProgram(alert.command, text); !problem.empty()) {
        problems.push_back(alert.command.front() + ": " + problem);
      }
    }
    if (!alert.webhook.empty()) {
      if (std::string problem = tellWebhook(alert.webhook, text); !problem.empty()) problems.push_back(problem);
    }
  }
  return problems;
}

void raiseAlert(const audit::Event& event, audit::Log* log, RunResult& result, const AlertSender& send) {
  for (const std::string& problem : send(asJson(event))) {
    result.notices.push_back("the alert did not get through: " + problem);
    if (log == nullptr) continue;
    (void)log->append({audit::EventType::alert_failed, audit::Severity::error, result.sandbox_id,
                       audit::Fields().text("reason", problem)});
  }
}

}  // namespace caisson::supervise
