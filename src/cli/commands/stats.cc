// `caisson stats`: counters and histograms over all runs of this user.
#include <algorithm>
#include <cstdio>
#include <ctime>

#include "audit/chain.h"
#include "audit/metrics.h"
#include "audit/reader.h"
#include "base/json_writer.h"
#include "caisson/run.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "policy/units.h"

namespace caisson::cli {
namespace {

using audit::EventType;
using audit::Histogram;
using audit::Metrics;
using Bounds = std::array<double, 12>;

constexpr Option kJson{.name = "json", .help = "Print the figures as JSON."};
constexpr Option kPrometheus{.name = "prometheus", .help = "Print the figures as Prometheus text."};
constexpr Option kOptions[] = {kJson, kPrometheus};
constexpr OptionGroup kGroups[] = {{"Output", kOptions}};

struct Counter {
  std::string_view name, words;
  EventType type;
};

constexpr Counter kCounters[] = {
    {"sandboxes_created", "sandboxes created", EventType::sandbox_created},
    {"sandboxes_failed", "could not be built", EventType::sandbox_failed},
    {"sandboxes_refused", "refused", EventType::sandbox_refused},
    {"timeouts", "ended by time", EventType::sandbox_timeout},
    {"limits_exceeded", "limits exceeded", EventType::limit_exceeded},
    {"policy_violations", "policy violations", EventType::policy_violation},
    {"escape_attempts", "escape attempts", EventType::escape_attempt},
    {"proxy_requests", "proxy requests", EventType::proxy_request},
    {"tools_quarantined", "tools quarantined", EventType::tool_quarantined},
};

std::string number(double value) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.10g", value);
  return text;
}

/// For display: three digits are enough.
std::string rounded(double value) {
  char text[64];
  std::snprintf(text, sizeof(text), value < 1000 ? "%.3g" : "%.0f", value);
  return text;
}

std::string bar(std::uint64_t part, std::uint64_t most) {
  constexpr std::uint64_t kWidth = 30;
  if (part == 0 || most == 0) return "";
  std::string text;
  for (std::uint64_t at = 0; at < std::max<std::uint64_t>(1, part * kWidth / most); ++at) text += "\u2588";
  return text;
}

std::string seconds(double value) { return value < 1 ? rounded(value * 1e3) + " ms" : rounded(value) + " s"; }
std::string bytes(double value) { return rounded(value / audit::kMiB) + " MiB"; }

void appendHistogram(std::string& out, std::string_view title, const Histogram& histogram, const Bounds& bounds,
                     std::string (*unit)(double)) {
  if (histogram.count == 0) return;
  const std::uint64_t most = *std::max_element(histogram.buckets.begin(), histogram.buckets.end());
  out += "\n" + std::string(title) + ": mean " + unit(histogram.sum / static_cast<double>(histogram.count)) +
         ", half below " + unit(histogram.quantile(0.5, bounds)) + ", 99 % below " +
         unit(histogram.quantile(0.99, bounds)) + "\n";
  for (std::size_t at = 0; at < histogram.buckets.size(); ++at) {
    if (histogram.buckets[at] == 0) continue;
    std::string label = at < bounds.size() ? "up to " + unit(bounds[at]) : "beyond " + unit(bounds.back());
    label.resize(std::max<std::size_t>(label.size(), 18), ' ');
    std::string figure = std::to_string(histogram.buckets[at]);
    figure.insert(0, figure.size() < 8 ? 8 - figure.size() : 0, ' ');
    out += "  " + label + figure + "  " + bar(histogram.buckets[at], most) + "\n";
  }
}

std::string asText(const Metrics& metrics, std::uint64_t now) {
  if (metrics.since == 0) return "Nothing has run yet.\n";
  std::string out =
      "Since " + audit::timeText(static_cast<std::int64_t>(metrics.since) * 1'000'000'000).substr(0, 19) + "Z\n\n";
  for (const Counter& counter : kCounters) {
    std::string words(counter.words);
    words.resize(26, ' ');
    out += "  " + words + std::to_string(metrics.of(counter.type)) + "\n";
  }
  out += "  network requests denied   " + std::to_string(metrics.network_denied) + "\n";
  out += "  system calls blocked      " + std::to_string(metrics.syscalls_blocked) + "\n";
  out += "\nCreated per second: " + rounded(metrics.rateOfLastMinute(now)) + " in the last minute, " +
         rounded(metrics.rateOfLastHour(now)) + " in the last hour\n";
  std::uint64_t most = 0;
  for (const std::uint64_t created : metrics.outcomes) most = std::max(most, created);
  out += "\nHow they ended\n";
  for (std::size_t at = 0; at < 6; ++at) {
    if (metrics.outcomes[at] == 0) continue;
    std::string words(name(static_cast<OutcomeKind>(at)));
    words.resize(18, ' ');
    std::string figure = std::to_string(metrics.outcomes[at]);
    figure.insert(0, figure.size() < 8 ? 8 - figure.size() : 0, ' ');
    out += "  " + words + figure + "  " + bar(metrics.outcomes[at], most) + "\n";
  }
  appendHistogram(out, "Lifetime", metrics.lifetime, audit::kSecondsBounds, seconds);
  appendHistogram(out, "CPU time", metrics.cpu, audit::kSecondsBounds, seconds);
  appendHistogram(out, "Peak memory", metrics.memory, audit::kBytesBounds, bytes);
  out += "\nRead " + bytes(static_cast<double>(metrics.read_bytes)) + ", written " +
         bytes(static_cast<double>(metrics.written_bytes)) + ", network " +
         bytes(static_cast<double>(metrics.network_bytes)) + "\n";
  return out;
}

void writeHistogram(JsonWriter& json, std::string_view key, const Histogram& histogram, const Bounds& bounds) {
  json.key(key).beginObject().key("count").number(histogram.count).key("sum").raw(number(histogram.sum));
  json.key("buckets").beginArray();
  for (std::size_t at = 0; at < histogram.buckets.size(); ++at) {
    json.beginObject().key("up_to");
    at < bounds.size() ? json.raw(number(bounds[at])) : json.null();
    json.key("count").number(histogram.buckets[at]).end();
  }
  json.end().end();
}

std::string asJson(const Metrics& metrics, std::uint64_t now) {
  JsonWriter json;
  json.beginObject().key("since").number(metrics.since);
  for (const Counter& counter : kCounters) json.key(counter.name).number(metrics.of(counter.type));
  json.key("proxy_denied").number(metrics.network_denied).key("syscalls_blocked").number(metrics.syscalls_blocked);
  json.key("created_per_second").beginObject();
  json.key("last_minute")
      .raw(number(metrics.rateOfLastMinute(now)))
      .key("last_hour")
      .raw(number(metrics.rateOfLastHour(now)))
      .end();
  json.key("outcomes").beginObject();
  for (std::size_t at = 0; at < 6; ++at) json.key(name(static_cast<OutcomeKind>(at))).number(metrics.outcomes[at]);
  json.end().key("events").beginObject();
  for (std::size_t at = 0; at <= static_cast<std::size_t>(EventType::dns_query); ++at)
    if (metrics.events[at] > 0) json.key(audit::name(static_cast<EventType>(at))).number(metrics.events[at]);
  json.end();
  writeHistogram(json, "lifetime_seconds", metrics.lifetime, audit::kSecondsBounds);
  writeHistogram(json, "cpu_seconds", metrics.cpu, audit::kSecondsBounds);
  writeHistogram(json, "peak_memory_bytes", metrics.memory, audit::kBytesBounds);
  json.key("read_bytes").number(metrics.read_bytes).key("written_bytes").number(metrics.written_bytes);
  json.key("network_bytes").number(metrics.network_bytes).end();
  return json.text() + "\n";
}

void exposeHistogram(std::string& out, const std::string& metric, std::string_view help, const Histogram& histogram,
                     const Bounds& bounds) {
  out += "# HELP " + metric + " " + std::string(help) + "\n# TYPE " + metric + " histogram\n";
  std::uint64_t cumulative = 0;
  for (std::size_t at = 0; at < histogram.buckets.size(); ++at) {
    cumulative += histogram.buckets[at];
    out += metric + "_bucket{le=\"" + (at < bounds.size() ? number(bounds[at]) : "+Inf") + "\"} " +
           std::to_string(cumulative) + "\n";
  }
  out += metric + "_sum " + number(histogram.sum) + "\n" + metric + "_count " + std::to_string(histogram.count) + "\n";
}

std::string asPrometheus(const Metrics& metrics) {
  std::string out;
  const auto expose = [&](const std::string& metric, std::string_view help, std::uint64_t value) {
    out += "# HELP " + metric + " " + std::string(help) + "\n# TYPE " + metric + " counter\n" + metric + " " +
           std::to_string(value) + "\n";
  };
  for (const Counter& counter : kCounters)
    expose("caisson_" + std::string(counter.name) + "_total", counter.words, metrics.of(counter.type));
  expose("caisson_proxy_denied_total", "network requests denied, of any kind", metrics.network_denied);
  expose("caisson_syscalls_blocked_total", "system calls blocked", metrics.syscalls_blocked);
  out += "# HELP caisson_outcomes_total how runs ended\n# TYPE caisson_outcomes_total counter\n";
  for (std::size_t at = 0; at < 6; ++at)
    out += "caisson_outcomes_total{outcome=\"" + std::string(name(static_cast<OutcomeKind>(at))) + "\"} " +
           std::to_string(metrics.outcomes[at]) + "\n";
  exposeHistogram(out, "caisson_sandbox_lifetime_seconds", "time from launch to end", metrics.lifetime,
                  audit::kSecondsBounds);
  exposeHistogram(out, "caisson_sandbox_cpu_seconds", "CPU time of a whole sandbox", metrics.cpu,
                  audit::kSecondsBounds);
  exposeHistogram(out, "caisson_sandbox_peak_memory_bytes", "peak memory of a whole sandbox", metrics.memory,
                  audit::kBytesBounds);
  expose("caisson_read_bytes_total", "bytes read from disk", metrics.read_bytes);
  expose("caisson_written_bytes_total", "bytes written to disk", metrics.written_bytes);
  expose("caisson_network_bytes_total", "bytes over the network", metrics.network_bytes);
  return out;
}

int perform(const Arguments& arguments) {
  const std::string path = audit::logDirectory();
  if (path.empty())
    return printError(
        plainError(Stage::state, "stats", "", "neither CAISSON_HOME nor HOME is set", "set CAISSON_HOME"));
  const auto metrics = audit::readMetrics(path);
  if (!metrics) return printError(metrics.error());
  const auto now = static_cast<std::uint64_t>(::time(nullptr));
  if (arguments.has(kJson)) return print(asJson(*metrics, now));
  return print(arguments.has(kPrometheus) ? asPrometheus(*metrics) : asText(*metrics, now));
}

}  // namespace

constinit const Verb kStats{
    .path = "stats",
    .summary = "Show counters and histograms over all runs",
    .description =
        "Sandboxes created, how they ended, lifetimes, CPU time and memory, violations and escape attempts, over "
        "all runs of this user.",
    .examples = "caisson stats\ncaisson stats --prometheus > /var/lib/node_exporter/caisson.prom",
    .topic = Topic::machine,
    .syntax = {.groups = kGroups},
    .perform = perform,
};

}  // namespace caisson::cli
