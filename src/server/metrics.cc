// Figures in the text format of Prometheus.
#include "audit/metrics.h"

#include "audit/reader.h"
#include "server/app.h"

namespace caisson::server {
namespace {

void addFigure(std::string& text, std::string_view name, std::string_view type, std::string_view help,
               std::uint64_t value) {
  text.append("# HELP caisson_").append(name).append(" ").append(help).append("\n# TYPE caisson_").append(name);
  text.append(" ")
      .append(type)
      .append("\ncaisson_")
      .append(name)
      .append(" ")
      .append(std::to_string(value))
      .append("\n");
}

}  // namespace

std::string App::metrics() {
  std::string text;
  if (server_ != nullptr) {
    const http::ServerStats& stats = server_->stats();
    addFigure(text, "http_connections", "gauge", "Open connections.", stats.open);
    addFigure(text, "http_streams", "gauge", "Open streams and terminals.", stats.streams);
    addFigure(text, "http_connections_total", "counter", "Accepted connections.", stats.accepted);
    addFigure(text, "http_connections_refused_total", "counter", "Connections over the limit.", stats.refused);
    addFigure(text, "http_requests_total", "counter", "Requests.", stats.requests);
    addFigure(text, "http_sent_bytes_total", "counter", "Bytes sent.", stats.bytes_sent);
  }
  addFigure(text, "sandboxes", "gauge", "Sandboxes that exist.", sandboxes_->count());
  text += "# HELP caisson_http_responses_total Responses by status.\n# TYPE caisson_http_responses_total counter\n";
  {
    const std::lock_guard lock(rate_mutex_);
    for (const auto& [status, count] : responses_)
      text += "caisson_http_responses_total{status=\"" + std::to_string(status) + "\"} " + std::to_string(count) + "\n";
  }
  text += "# HELP caisson_pool_ready Sandboxes that wait in a pool.\n# TYPE caisson_pool_ready gauge\n";
  for (const auto& [name, ready] : readyPools())
    text += "caisson_pool_ready{template=" + writeJson(name) + "} " + std::to_string(ready) + "\n";
  const auto counted = audit::readMetrics(audit::logDirectory());
  if (!counted) return text;
  text += "# HELP caisson_audit_events_total Events in the audit log.\n# TYPE caisson_audit_events_total counter\n";
  for (std::size_t i = 0; i < counted->events.size(); ++i) {
    if (counted->events[i] == 0) continue;
    text += "caisson_audit_events_total{event=\"" + std::string(audit::name(static_cast<audit::EventType>(i))) +
            "\"} " + std::to_string(counted->events[i]) + "\n";
  }
  return text;
}

}  // namespace caisson::server
