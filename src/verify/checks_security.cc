// SECURITY: the program's identity, what it can change, what it sees of the host.
#include <cstdlib>

#include "verify/suite.h"

namespace caisson::verify {
namespace {

constexpr Check kChecks[] = {
    {"security.ordinary-user", Category::security, "The program is an ordinary user, not root",
     [](Context& context) { return printed(context.script("id -u; id -g"), "1000\n1000\n"); }},
    {"security.read-only-root", Category::security, "The root and /etc can't be written",
     [](Context& context) {
       return printed(
           context.script("for f in /x /etc/x /etc/passwd; do (: >> $f) 2>/dev/null && echo wrote $f; done; echo end"),
           "end\n");
     }},
    {"security.read-only-system", Category::security, "The host's system directories are mounted read-only",
     [](Context& context) { return contained(context.inside({"without", "/usr", "ro"})); }},
    {"security.no-capabilities", Category::security, "All five capability sets are empty",
     [](Context& context) { return contained(context.inside({"capabilities"})); }},
    {"security.no-new-privileges", Category::security, "no_new_privs is set: setuid programs give no privileges",
     [](Context& context) { return contained(context.inside({"status-not", "NoNewPrivs", "1"})); }},
    {"security.syscall-filter", Category::security, "A system-call filter is in force",
     [](Context& context) { return contained(context.inside({"status-not", "Seccomp", "2"})); }},
    {"security.no-setuid-files", Category::security, "No setuid file can be made",
     [](Context& context) { return contained(context.inside({"setuid", "/tmp/x"})); }},
    {"security.root-home-hidden", Category::security, "/root can't be looked into",
     [](Context& context) {
       return printed(context.script("ls /root >/dev/null 2>&1 && echo seen; echo end"), "end\n");
     }},
    {"security.host-processes-hidden", Category::security, "The host's processes are not there",
     [](Context& context) {
       // In a new pid namespace, a shell's pid is small.
       return printed(context.script("[ $$ -lt 50 ] || echo my number is $$; echo end"), "end\n");
     }},
    {"security.environment-clean", Category::security, "The caller's environment does not come through",
     [](Context& context) {
       ::setenv("CAISSON_VERIFY_CANARY", context.secret().c_str(), 1);
       const Observed seen = context.script("env");
       ::unsetenv("CAISSON_VERIFY_CANARY");
       if (!seen.ran || seen.out.empty()) return failed(seen.describe());
       return seen.out.find(context.secret()) == std::string::npos ? passed() : failed("the variable came through");
     }},
    {"security.host-files-hidden", Category::security, "A host file that was not named can't be read",
     [](Context& context) { return contained(context.inside({"read", context.canaryPath()})); }},
};

}  // namespace

std::span<const Check> securityChecks() { return kChecks; }

}  // namespace caisson::verify
