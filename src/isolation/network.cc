// The sandbox's own loopback, the only interface it has.
#include <linux/if.h>
#include <linux/sockios.h>
#include <sys/socket.h>

#include "isolation/child.h"

namespace caisson::isolation {

void bringUpLoopback(const Block& block) {
  const long fd =
      must(block, Stage::namespaces, "socket", "AF_INET", raw(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  copyText(request.ifr_name, sizeof(request.ifr_name), "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  must(block, Stage::namespaces, "ioctl SIOCSIFFLAGS", "lo", raw(SYS_ioctl, fd, SIOCSIFFLAGS, &request));
  closeFd(static_cast<int>(fd));
}

}  // namespace caisson::isolation
