// File access with the rights of the sandbox's user, for root callers: their own id does not exist inside.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include "sys/raw_syscall.h"

namespace caisson::session {

/// Switches the file system identity of the calling thread to `id` during its lifetime; 0 changes nothing.
class AsPayload {
 public:
  explicit AsPayload(uid_t id) : active_(id != 0) {
    if (!active_) return;
    sys::raw(SYS_setfsgid, id);
    sys::raw(SYS_setfsuid, id);
  }
  ~AsPayload() {
    if (!active_) return;
    sys::raw(SYS_setfsuid, ::geteuid());
    sys::raw(SYS_setfsgid, ::getegid());
  }
  AsPayload(const AsPayload&) = delete;
  AsPayload& operator=(const AsPayload&) = delete;

 private:
  bool active_;
};

}  // namespace caisson::session
