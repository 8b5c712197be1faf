#include "session/program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

// clang-format off
asm(".section .rodata\n"
    ".balign 16\n"
    "caissonSessionInit:\n"
    ".incbin \"" CAISSON_SESSION_INIT "\"\n"
    "caissonSessionInitEnd:\n"
    ".previous\n");
// clang-format on
extern "C" {
extern const char caissonSessionInit[] __attribute__((visibility("hidden")));
extern const char caissonSessionInitEnd[] __attribute__((visibility("hidden")));
}

namespace caisson::session {
namespace {

constexpr unsigned kExecutable = 0x0010;  // MFD_EXEC, Linux 6.3: makes the earlier default explicit

std::string_view program() {
  return {caissonSessionInit, static_cast<std::size_t>(caissonSessionInitEnd - caissonSessionInit)};
}

bool writeProgram(int descriptor) {
  const std::string_view bytes = program();
  return ::write(descriptor, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

}  // namespace

Result<sys::Fd> initProgram() {
  int made = ::memfd_create("caisson-init", MFD_CLOEXEC | MFD_ALLOW_SEALING | kExecutable);
  if (made < 0 && errno == EINVAL) made = ::memfd_create("caisson-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made < 0) {
    return fail(sysError(Stage::launch, "memfd_create", "pid 1 of the session", errno,
                         "sessions execute a memory file of their own: allow that with sysctl vm.memfd_noexec=0"));
  }
  sys::Fd file(made);
  if (!writeProgram(made)) return fail(sysError(Stage::launch, "write", "pid 1 of the session", errno));
  if (::fcntl(made, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
    return fail(sysError(Stage::launch, "fcntl", "F_ADD_SEALS", errno));
  }
  return file;
}

}  // namespace caisson::session
