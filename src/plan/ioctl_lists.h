// The ioctl requests that payloads may make, by class. All others return ENOTTY, as for an object without the request:
// requests reach drivers and file systems directly, and sandboxed programs need few of them.
//
// The numbers are those of x86_64 and aarch64; ioctl_lists_test.cc compares them with the kernel's headers.
// docs/syscalls.md is generated from these lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace caisson::plan::rules {

struct IoctlRequest {
  std::string_view name;
  std::uint32_t value;
};

struct IoctlClass {
  std::string_view name;
  std::string_view reason;
  std::span<const IoctlRequest> requests;
};

inline constexpr IoctlRequest kDescriptorRequests[] = {
    {"FIONREAD", 0x541b}, {"FIONBIO", 0x5421},  {"FIOCLEX", 0x5451},
    {"FIONCLEX", 0x5450}, {"FIOASYNC", 0x5452}, {"FIOQSIZE", 0x5460},
};

/// No TIOCSTI and TIOCLINUX (typing into the terminal), no TIOCSETD (loads a line discipline), no TIOCCONS.
inline constexpr IoctlRequest kTerminalRequests[] = {
    {"TCGETS", 0x5401},       {"TCGETS2", 0x802c542a},    {"TIOCGWINSZ", 0x5413},    {"TIOCGPGRP", 0x540f},
    {"TIOCSPGRP", 0x5410},    {"TCSETS", 0x5402},         {"TCSETSW", 0x5403},       {"TCSETSF", 0x5404},
    {"TCSETS2", 0x402c542b},  {"TCSETSW2", 0x402c542c},   {"TCSETSF2", 0x402c542d},  {"TCGETA", 0x5405},
    {"TCSETA", 0x5406},       {"TCSETAW", 0x5407},        {"TCSETAF", 0x5408},       {"TIOCSWINSZ", 0x5414},
    {"TIOCGPTN", 0x80045430}, {"TIOCSPTLCK", 0x40045431}, {"TIOCGPTPEER", 0x5441},   {"TIOCSCTTY", 0x540e},
    {"TIOCNOTTY", 0x5422},    {"TIOCGSID", 0x5429},       {"TIOCOUTQ", 0x5411},      {"TCSBRK", 0x5409},
    {"TCSBRKP", 0x5425},      {"TCXONC", 0x540a},         {"TCFLSH", 0x540b},        {"TIOCPKT", 0x5420},
    {"TIOCEXCL", 0x540c},     {"TIOCNXCL", 0x540d},       {"TIOCGEXCL", 0x80045440}, {"TIOCGPTLCK", 0x80045439},
    {"TIOCGPKT", 0x80045438}, {"TIOCSIG", 0x40045436},    {"TIOCGETD", 0x5424},      {"TIOCGDEV", 0x80045432},
};

inline constexpr IoctlRequest kFileRequests[] = {
    {"FICLONE", 0x40049409},
    {"FICLONERANGE", 0x4020940d},
    {"FIGETBSZ", 0x2},
    {"FS_IOC_GETFLAGS", 0x80086601},
};

inline constexpr IoctlRequest kSocketRequests[] = {
    {"SIOCGIFCONF", 0x8912},    {"SIOCGIFFLAGS", 0x8913},   {"SIOCGIFADDR", 0x8915},   {"SIOCGIFINDEX", 0x8933},
    {"SIOCGIFNAME", 0x8910},    {"SIOCGIFHWADDR", 0x8927},  {"SIOCGIFMTU", 0x8921},    {"SIOCGIFNETMASK", 0x891b},
    {"SIOCGIFBRDADDR", 0x8919}, {"SIOCGIFDSTADDR", 0x8917}, {"SIOCGIFMETRIC", 0x891d}, {"SIOCGIFTXQLEN", 0x8942},
    {"SIOCATMARK", 0x8905},     {"SIOCOUTQNSD", 0x894b},    {"SIOCSPGRP", 0x8902},     {"SIOCGPGRP", 0x8904},
};

inline constexpr IoctlRequest kRandomRequests[] = {
    {"RNDGETENTCNT", 0x80045200},
};

inline constexpr IoctlClass kIoctlClasses[] = {
    {"descriptors", "event loops ask how much can be read and switch blocking off", kDescriptorRequests},
    {"terminals", "shells, editors and programs that open ptys of their own", kTerminalRequests},
    {"files", "copies that share blocks; listing file flags", kFileRequests},
    {"sockets", "reading addresses of the sandbox's own interfaces; nothing can be set", kSocketRequests},
    {"random numbers", "cryptographic libraries ask whether the generator is ready", kRandomRequests},
};

}  // namespace caisson::plan::rules
