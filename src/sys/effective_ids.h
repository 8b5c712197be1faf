// Acts with the rights of another user for a moment, in one thread.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "sys/raw_syscall.h"

namespace caisson::sys {

/// The calling thread has these effective ids, and so no effective capabilities, until the destructor. The real and
/// saved ids stay: a process of that user can neither signal nor trace us meanwhile. Does nothing if the ids are ours.
class EffectiveIds {
 public:
  EffectiveIds(uid_t uid, gid_t gid) : uid_(::geteuid()), gid_(::getegid()) {
    if (uid == uid_) return;
    // Not the functions of the C library, which change all threads.
    changed_gid_ = raw(SYS_setresgid, -1, gid, -1) == 0;
    changed_uid_ = changed_gid_ && raw(SYS_setresuid, -1, uid, -1) == 0;
    valid_ = changed_uid_;
  }
  ~EffectiveIds() {
    if (changed_uid_) raw(SYS_setresuid, -1, uid_, -1);  // first: it gives back the right to change the group
    if (changed_gid_) raw(SYS_setresgid, -1, gid_, -1);
  }
  EffectiveIds(const EffectiveIds&) = delete;
  EffectiveIds& operator=(const EffectiveIds&) = delete;

  /// False if the ids could not be changed.
  [[nodiscard]] bool valid() const { return valid_; }

 private:
  uid_t uid_;
  gid_t gid_;
  bool changed_uid_ = false, changed_gid_ = false, valid_ = true;
};

}  // namespace caisson::sys
