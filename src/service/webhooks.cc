#include "service/webhooks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>

#include "base/sha256.h"
#include "sys/host_program.h"

namespace caisson::service {
namespace {

constexpr int kTries = 3;
constexpr std::chrono::seconds kDeliveryTimeout{10};
constexpr int kConfigDescriptor = 3;
constexpr std::size_t kMaxBatch = std::size_t{64} << 10U;  ///< bytes of events that are delivered in a row

/// A descriptor from which `text` can be read.
sys::Fd readable(std::string_view text) {
  sys::Fd file(::memfd_create("caisson-webhook", MFD_CLOEXEC));
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return {};
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

/// In a configuration file instead of arguments, which all users can see.
std::string curlConfig(const Webhook& hook, const std::string& body) {
  std::string url;
  for (const char c : hook.url) url.append(c == '"' || c == '\\' ? "\\" : "").append(1, c);
  return "url = \"" + url + "\"\nheader = \"Content-Type: application/json\"\nheader = \"X-Caisson-Signature: sha256=" +
         hmacSha256(hook.secret, body) + "\"\n";
}

bool deliver(const Webhook& hook, const std::string& body) {
  const sys::Fd input = readable(body);
  const sys::Fd config = readable(curlConfig(hook, body));
  if (!input || !config) return false;
  auto program =
      sys::HostProgram::start({.arguments = {"curl", "--silent", "--fail", "--max-time", "9", "--proto", "=http,https",
                                             "--data-binary", "@-", "--config", "/dev/fd/3"},
                               .search_path = true,
                               .inherit_environment = true,
                               .descriptors = {{input.get(), STDIN_FILENO}, {config.get(), kConfigDescriptor}}});
  if (!program) return false;
  const auto status = program->wait(kDeliveryTimeout);
  return status && *status == 0;
}

}  // namespace

std::string hmacSha256(std::string_view key, std::string_view text) {
  std::array<std::uint8_t, 64> inner{}, outer{};
  std::string block(key);
  if (block.size() > inner.size()) {
    const Digest digest = Sha256().add(key).finish();
    block.assign(digest.begin(), digest.end());
  }
  block.resize(inner.size(), '\0');
  for (std::size_t i = 0; i < inner.size(); ++i) {
    inner[i] = static_cast<std::uint8_t>(block[i]) ^ std::uint8_t{0x36};
    outer[i] = static_cast<std::uint8_t>(block[i]) ^ std::uint8_t{0x5c};
  }
  const Digest first = Sha256().add(inner.data(), inner.size()).add(text).finish();
  return hex(Sha256().add(outer.data(), outer.size()).add(first).finish());
}

Webhooks::Webhooks(Events& events, std::vector<Webhook> hooks) : events_(events), hooks_(std::move(hooks)) {
  if (hooks_.empty()) return;
  subscription_ = events_.subscribe([signal = signal_](const LifecycleEvent&) {
    const std::lock_guard lock(signal->mutex);
    signal->pending = true;
    signal->changed.notify_all();
  });
  thread_ = std::thread([this] { work(); });
}

Webhooks::~Webhooks() {
  subscription_.reset();
  {
    const std::lock_guard lock(signal_->mutex);
    signal_->ending = true;
  }
  signal_->changed.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Webhooks::work() {
  Events::Position position;
  std::unique_lock lock(signal_->mutex);
  while (!signal_->ending) {
    signal_->changed.wait(lock, [this] { return signal_->ending || signal_->pending; });
    signal_->pending = false;
    lock.unlock();
    const auto events = events_.next(position, kMaxBatch, [](const std::string&) { return true; });
    for (const LifecycleEvent& event : events) {
      const std::string body = writeJson(describeEvent(event));
      for (const Webhook& hook : hooks_) {
        int tries = 0;
        while (!deliver(hook, body) && ++tries < kTries) std::this_thread::sleep_for(std::chrono::seconds(tries));
      }
    }
    lock.lock();
    if (!events.empty()) signal_->pending = true;  // there may be more
  }
}

}  // namespace caisson::service
