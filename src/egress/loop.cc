#include "egress/loop.h"

#include <sys/epoll.h>

#include <cerrno>

namespace caisson::egress {

Result<void> Loop::open() {
  epoll_ = sys::Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return fail(sysError(Stage::launch, "epoll_create1", "egress", errno));
  return {};
}

bool Loop::watch(int descriptor, std::uint32_t events, Watcher* watcher) {
  const auto index = static_cast<std::size_t>(descriptor);
  if (index >= entries_.size()) entries_.resize(index + 64);
  Entry& entry = entries_[index];
  const bool known = entry.watcher != nullptr;
  if (known && entry.events == events && entry.watcher == watcher) return true;
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<std::uint64_t>(entry.generation) << 32 | static_cast<std::uint32_t>(descriptor);
  if (::epoll_ctl(epoll_.get(), known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event) != 0) return false;
  entry.watcher = watcher;
  entry.events = events;
  return true;
}

void Loop::forget(int descriptor) {
  const auto index = static_cast<std::size_t>(descriptor);
  if (descriptor < 0 || index >= entries_.size() || entries_[index].watcher == nullptr) return;
  epoll_event unused{};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, &unused);
  entries_[index].watcher = nullptr;
  ++entries_[index].generation;  // a reused descriptor number gets another generation
}

void Loop::turn(int milliseconds) {
  epoll_event events[64];
  const int count = ::epoll_wait(epoll_.get(), events, 64, milliseconds);
  for (int i = 0; i < count; ++i) {
    const auto descriptor = static_cast<std::uint32_t>(events[i].data.u64);
    const auto generation = static_cast<std::uint32_t>(events[i].data.u64 >> 32);
    const Entry entry = entries_[descriptor];
    if (entry.watcher == nullptr || entry.generation != generation) continue;
    entry.watcher->onEvents(static_cast<int>(descriptor), events[i].events);
  }
}

}  // namespace caisson::egress
