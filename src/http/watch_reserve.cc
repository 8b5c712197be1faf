#include "http/watch_reserve.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <cerrno>

namespace caisson::http {
namespace {

sys::Fd makeWatchable() { return sys::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

}  // namespace

WatchReserve::WatchReserve(std::size_t count, std::size_t for_owner)
    : count_(count), for_owner_(for_owner), epoll_(::epoll_create1(EPOLL_CLOEXEC)), probe_(makeWatchable()) {
  held_.reserve(count);
  refill();
}

bool WatchReserve::add(int descriptor) const {
  epoll_event none{};
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &none) == 0;
}

bool WatchReserve::isAvailable() {
  if (!epoll_ || !probe_) return true;  // unknown: the registration itself tells
  if (!add(probe_.get())) return errno != ENOSPC;
  epoll_event none{};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, probe_.get(), &none);
  return true;
}

bool WatchReserve::makeRoom(bool owner) {
  if (isAvailable()) return true;
  if (held_.size() <= (owner ? 0 : for_owner_)) return false;
  held_.pop_back();
  return true;
}

void WatchReserve::refill() {
  while (epoll_ && held_.size() < count_) {
    sys::Fd one = makeWatchable();
    if (!one || !add(one.get())) return;
    held_.push_back(std::move(one));
  }
}

}  // namespace caisson::http
