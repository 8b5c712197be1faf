// The caller's terminal: injecting input, writing to it, switching its console.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "payload.h"

namespace payload {
namespace {

constexpr unsigned long kHighBits = 0xdead00000000UL;

int openTerminal(const std::string& path) { return open(path.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC); }

/// Injects one character into the terminal's input. With "high-bits" the request has bits that the kernel ignores and
/// that would fool a filter which compares 64 bits (CVE-2019-10063).
int typeCharacter(const Arguments& arguments) {
  const int terminal = openTerminal(arguments[0]);
  if (terminal < 0) return refused("open");
  const bool high = arguments.size() > 1 && arguments[1] == "high-bits";
  const char character = '#';
  return report("ioctl", syscall(SYS_ioctl, terminal, (high ? kHighBits : 0) | TIOCSTI, &character));
}

/// Queries the console's selection state, which changes nothing. Any result but EPERM means that the call reached the
/// kernel.
int askConsole(const Arguments& arguments) {
  const int terminal = openTerminal(arguments[0]);
  if (terminal < 0) return refused("open");
  const bool high = arguments.size() > 1 && arguments[1] == "high-bits";
  char request = 6;  // TIOCL_GETSHIFTSTATE
  const long result = syscall(SYS_ioctl, terminal, (high ? kHighBits : 0) | TIOCLINUX, &request);
  if (result >= 0 || errno != EPERM) return done();
  return refused("ioctl");
}

int writeOnTerminal(const Arguments& arguments) {
  const int terminal = openTerminal(arguments[0]);
  if (terminal < 0) return refused("open");
  return report("write", write(terminal, arguments[1].data(), arguments[1].size()));
}

int terminalName(const Arguments&) {
  char name[256] = {};
  const int error = ttyname_r(0, name, sizeof(name));
  return error == 0 ? done(name) : refused("ttyname", error);
}

constexpr Verb kVerbs[] = {
    {"type-character", "TERMINAL [high-bits]", 1, typeCharacter},
    {"ask-console", "TERMINAL [high-bits]", 1, askConsole},
    {"write-on-terminal", "TERMINAL TEXT", 2, writeOnTerminal},
    {"terminal-name", "", 0, terminalName},
};

}  // namespace

std::span<const Verb> terminalVerbs() { return kVerbs; }

}  // namespace payload
