#include "service/change_watcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

namespace caisson::service {
namespace {

constexpr std::uint32_t kChanges = IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                   IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_ONESHOT;

}  // namespace

ChangeWatcher::ChangeWatcher() : inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)), stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (inotify_ && stop_) thread_ = std::thread([this] { work(); });
}

ChangeWatcher::~ChangeWatcher() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  static_cast<void>(::write(stop_.get(), &one, sizeof(one)));
  thread_.join();
}

bool ChangeWatcher::watch(const void* reader, int directory, const std::function<void()>& wake) {
  if (!thread_.joinable()) return false;
  const std::string path = "/proc/self/fd/" + std::to_string(directory);
  // Under the lock: the event must not be dispatched before the reader is in the list.
  const std::lock_guard lock(mutex_);
  const int number = ::inotify_add_watch(inotify_.get(), path.c_str(), kChanges);
  if (number < 0) return false;
  watches_[number][reader] = wake;
  return true;
}

void ChangeWatcher::forget(const void* reader) {
  const std::lock_guard lock(mutex_);
  for (auto one = watches_.begin(); one != watches_.end();) {
    one->second.erase(reader);
    if (!one->second.empty()) {
      ++one;
      continue;
    }
    ::inotify_rm_watch(inotify_.get(), one->first);
    one = watches_.erase(one);
  }
}

void ChangeWatcher::dispatch(int number) {
  Readers readers;
  {
    const std::lock_guard lock(mutex_);
    if (number < 0) {  // events were lost
      for (auto& [watch, some] : watches_) readers.insert(some.begin(), some.end());
    } else if (const auto found = watches_.find(number); found != watches_.end()) {
      readers = std::move(found->second);
      watches_.erase(found);
    }
  }
  for (const auto& [reader, wake] : readers) wake();
}

void ChangeWatcher::work() {
  alignas(inotify_event) char buffer[4096];
  for (;;) {
    pollfd wait[] = {{inotify_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    if (::poll(wait, 2, -1) < 0 && errno != EINTR) return;
    if (wait[1].revents != 0) return;
    const ssize_t got = ::read(inotify_.get(), buffer, sizeof(buffer));
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      dispatch((event->mask & IN_Q_OVERFLOW) != 0 ? -1 : event->wd);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
  }
}

}  // namespace caisson::service
