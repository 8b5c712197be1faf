// The sandbox's loopback, its only interface.
#include <linux/if.h>
#include <linux/sockios.h>

#include "isolation/child.h"

namespace caisson::isolation {

void bringUpLoopback(const Block& block, int socket) {
  ifreq request{};
  copyText(request.ifr_name, sizeof(request.ifr_name), "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  must(block, Stage::namespaces, "ioctl SIOCSIFFLAGS", "lo", raw(SYS_ioctl, socket, SIOCSIFFLAGS, &request));
}

}  // namespace caisson::isolation
