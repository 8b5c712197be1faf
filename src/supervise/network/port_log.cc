#include "supervise/network/port_log.h"

#include "base/error.h"
#include "supervise/network/egress.h"

namespace caisson::supervise {
namespace {

egress::Request requestFor(std::string operation, std::uint16_t port) {
  egress::Request request;
  request.operation = std::move(operation);
  request.host = "localhost";
  request.port = port;
  request.address = "127.0.0.1";
  request.allowed = true;
  request.rule = "network.host_ports";
  return request;
}

}  // namespace

bool PortLog::record(egress::Request request, std::string_view error) {
  audit::Log* log = log_();
  if (log == nullptr) return true;
  const auto due = requests_.add(std::move(request), egress::RequestLog::WallClock::now());
  return !due || recordRequest(*due, *log, sandbox_id_, error);
}

bool PortLog::opened(std::uint16_t port) { return record(requestFor(egress::kOpened, port)); }

void PortLog::closed(std::uint16_t port, const PortRelay::Finished& finished) {
  egress::Request request = requestFor("connect", port);
  request.sent = finished.sent;
  request.received = finished.received;
  request.milliseconds = finished.milliseconds;
  (void)record(std::move(request), finished.error == 0 ? std::string() : errnoName(finished.error));
}

void PortLog::refused(std::uint16_t port) {
  egress::Request request = requestFor("connect", port);
  request.allowed = false;
  request.category = egress::Category::loopback;
  request.rule = "network.max_connections";
  (void)record(std::move(request));
}

void PortLog::flush() {
  audit::Log* log = log_();
  if (log == nullptr) return;
  for (const egress::Request& request : requests_.takeRepetitions()) (void)recordRequest(request, *log, sandbox_id_);
}

}  // namespace caisson::supervise
