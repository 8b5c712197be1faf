// CVE: escapes from other sandboxes, tried on this one.
#include "verify/suite.h"

namespace caisson::verify {
namespace {

constexpr Check kChecks[] = {
    {"cve.2017-5226", Category::cve, "CVE-2017-5226: no input can be pushed into the caller's terminal (TIOCSTI)",
     [](Context& context) { return contained(context.inside({"ioctl", "0x5412"})); }},
    {"cve.2019-10063", Category::cve, "CVE-2019-10063: nor with bits set that the kernel ignores",
     [](Context& context) { return contained(context.inside({"ioctl", "0x100005412"})); }},
    {"cve.tioclinux", Category::cve, "TIOCLINUX, its sister, is refused as well",
     [](Context& context) { return contained(context.inside({"ioctl", "0x541C"})); }},
    {"cve.2024-1086", Category::cve, "CVE-2024-1086: netfilter can't be talked to",
     [](Context& context) { return contained(context.inside({"socket", "16", "3", "12"})); }},
    {"cve.2023-2640", Category::cve, "CVE-2023-2640: no user namespace for overlay tricks with capabilities",
     [](Context& context) { return contained(context.inside({"call", "unshare", "0x10000000"})); }},
    {"cve.2022-0185", Category::cve, "CVE-2022-0185: file systems can't be configured (fsconfig)",
     [](Context& context) { return contained(context.inside({"call", "fsconfig", "-1"})); }},
    {"cve.2022-0492", Category::cve, "CVE-2022-0492: nothing can be mounted, cgroups included",
     [](Context& context) { return contained(context.inside({"call", "mount", "0", "0", "0", "0", "0"})); }},
    {"cve.2019-5736", Category::cve, "CVE-2019-5736: pid 1's program can't be opened",
     [](Context& context) { return contained(context.inside({"read", "/proc/1/exe"})); }},
    {"cve.2024-21626", Category::cve, "CVE-2024-21626: no descriptor of the caller's is left open",
     [](Context& context) { return contained(context.inside({"descriptors"})); }},
    {"cve.2025-31133", Category::cve, "CVE-2025-31133: masked kernel files can't be read",
     [](Context& context) { return contained(context.inside({"read", "/proc/interrupts"})); }},
    {"cve.2025-52881", Category::cve, "CVE-2025-52881: kernel settings in /proc/sys are read-only",
     [](Context& context) { return contained(context.inside({"without", "/proc/sys", "ro"})); }},
    {"cve.2016-0728", Category::cve, "CVE-2016-0728: the kernel's keyrings are closed",
     [](Context& context) { return contained(context.inside({"call", "keyctl", "999"})); }},
    {"cve.2022-2602", Category::cve, "CVE-2022-2602: io_uring is closed",
     [](Context& context) { return contained(context.inside({"call", "io_uring_setup", "0", "0"})); }},
    {"cve.2014-shocker", Category::cve, "The shocker: files can't be opened by handle",
     [](Context& context) {
       return contained(context.inside({"call", "name_to_handle_at", "-1", "@", "0", "0", "0xffff"}));
     }},
};

}  // namespace

std::span<const Check> cveChecks() { return kChecks; }

}  // namespace caisson::verify
