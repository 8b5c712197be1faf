#include "verify/suite.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/json_writer.h"
#include "base/safe_text.h"

namespace caisson::verify {
namespace {

constexpr std::size_t kTitleColumn = 78;

std::string hostName() {
  utsname name{};
  ::uname(&name);
  return std::string("Linux ") + name.release + " on " + name.machine + ", uid " + std::to_string(::geteuid());
}

std::string paint(std::string_view text, CheckState state, bool colour) {
  if (!colour) return std::string(text);
  const char* code = state == CheckState::passed ? "\033[32m" : state == CheckState::failed ? "\033[1;31m" : "\033[33m";
  return code + std::string(text) + "\033[0m";
}

/// One line without control characters, for terminals and XML.
std::string plain(std::string_view text) {
  std::string out;
  for (const char letter : text) out += static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f ? ' ' : letter;
  return out;
}

std::string xml(std::string_view text) {
  std::string out;
  for (const char letter : plain(text)) {
    switch (letter) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += letter;
    }
  }
  return out;
}

std::string seconds(double milliseconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f", milliseconds / 1e3);
  return text;
}

std::string summary(const SuiteReport& report) {
  return std::to_string(report.count(CheckState::passed)) + " passed, " +
         std::to_string(report.count(CheckState::failed)) + " failed, " +
         std::to_string(report.count(CheckState::skipped)) + " skipped";
}

}  // namespace

std::vector<const Check*> allChecks() {
  std::vector<const Check*> all;
  for (const auto table : {securityChecks, resourceChecks, networkChecks, functionalChecks, edgeCaseChecks,
                           invariantChecks, cveChecks, escapeChecks})
    for (const Check& check : table()) all.push_back(&check);
  return all;
}

std::optional<Category> categoryNamed(std::string_view name_sought) {
  std::string upper(name_sought);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char letter) {
    return letter == '-' ? '_' : letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  });
  for (std::size_t at = 0; at < kCategories; ++at)
    if (name(static_cast<Category>(at)) == upper) return static_cast<Category>(at);
  return std::nullopt;
}

std::size_t SuiteReport::count(CheckState state) const {
  return static_cast<std::size_t>(std::count_if(
      results.begin(), results.end(), [&](const CheckResult& result) { return result.verdict.state == state; }));
}

namespace {

Verdict startSandbox(Context& context) {
  const Observed observed = context.run({.command = {"true"}});
  const bool no_program = observed.result.error && observed.result.error->code == ErrorCode::program_not_started;
  if (observed.ran || no_program) return passed();
  const std::string hint = observed.result.error ? observed.result.error->hint : "";
  return failed(observed.describe() + (hint.empty() ? "" : "; try: " + hint));
}

constexpr Check kStart{"setup.sandbox", Category::functional, "A sandbox can be started", startSandbox};

}  // namespace

SuiteReport runSuite(Context& context, std::optional<Category> category,
                     const std::function<void(std::size_t at, std::size_t of, const Check& check)>& progress) {
  using Clock = std::chrono::steady_clock;
  SuiteReport report;
  report.host = hostName();
  auto checks = allChecks();
  std::erase_if(checks, [&](const Check* check) { return category && check->category != *category; });
  if (Verdict start = startSandbox(context); start.state != CheckState::passed) {
    start.detail = plain(start.detail);
    report.results.push_back({&kStart, std::move(start), 0});
    return report;
  }
  for (std::size_t at = 0; at < checks.size(); ++at) {
    if (progress) progress(at, checks.size(), *checks[at]);
    const auto start = Clock::now();
    Verdict verdict = checks[at]->perform(context);
    verdict.detail = plain(verdict.detail);
    report.results.push_back(
        {checks[at], std::move(verdict), std::chrono::duration<double, std::milli>(Clock::now() - start).count()});
  }
  return report;
}

std::string renderText(const SuiteReport& report, bool colour) {
  std::string out = safeLine(report.host) + "\n";
  std::optional<Category> heading;
  for (const CheckResult& result : report.results) {
    if (heading != result.check->category) {
      heading = result.check->category;
      out += "\n" + (colour ? "\033[1m" + std::string(name(*heading)) + "\033[0m" : std::string(name(*heading))) + "\n";
    }
    std::string title(result.check->title);
    title.resize(std::max(title.size(), kTitleColumn), ' ');
    out += "  " + title + "  " + paint(name(result.verdict.state), result.verdict.state, colour) + "\n";
    if (result.verdict.state != CheckState::passed && !result.verdict.detail.empty())
      out += "      " + safeLine(result.verdict.detail) + "\n";
  }
  return out + "\n" + paint(summary(report), report.good() ? CheckState::passed : CheckState::failed, colour) + "\n";
}

std::string renderJson(const SuiteReport& report) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.beginObject().key("host").string(report.host);
  for (const CheckState state : {CheckState::passed, CheckState::failed, CheckState::skipped}) {
    json.key(name(state)).number(report.count(state));
  }
  json.key("checks").beginArray();
  for (const CheckResult& result : report.results) {
    json.beginObject().key("id").string(result.check->id).key("category").string(name(result.check->category));
    json.key("title").string(result.check->title).key("state").string(name(result.verdict.state));
    json.key("detail").string(result.verdict.detail).key("duration_ms").number(result.milliseconds).end();
  }
  return json.end().end().text() + "\n";
}

std::string renderJUnit(const SuiteReport& report) {
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"caisson verify\" tests=\"" +
                    std::to_string(report.results.size()) + "\" failures=\"" +
                    std::to_string(report.count(CheckState::failed)) + "\" skipped=\"" +
                    std::to_string(report.count(CheckState::skipped)) + "\">\n";
  for (const CheckResult& result : report.results) {
    out += "  <testcase classname=\"" + std::string(name(result.check->category)) + "\" name=\"" +
           xml(result.check->id) + "\" time=\"" + seconds(result.milliseconds) + "\"";
    if (result.verdict.state == CheckState::passed) {
      out += "/>\n";
      continue;
    }
    const char* tag = result.verdict.state == CheckState::failed ? "failure" : "skipped";
    out += std::string("><") + tag + " message=\"" + xml(result.verdict.detail) + "\"/></testcase>\n";
  }
  return out + "</testsuite>\n";
}

}  // namespace caisson::verify
