// SECURITY: the program's identity, what it can change, what it sees of the host.
#include <cstdlib>
#include <filesystem>

#include "plan/filesystem.h"
#include "supervise/disk/caches.h"
#include "verify/suite.h"

namespace caisson::verify {
namespace {

/// Removes the caches of the check's workspace.
struct RemoveCaches {
  const std::string& workspace;

  ~RemoveCaches() {
    std::error_code problem;
    const auto path = std::filesystem::canonical(workspace, problem);
    if (problem) return;
    for (const char* use : {"run", "session"})
      (void)supervise::removeCachesOf(plan::workspaceCache(use, path.string()));
  }
};

/// A run leaves a file and configuration in its cache: the next run finds only the file, a session nothing.
Verdict keepsCachesApart(Context& context) {
  const auto shell = [](const char* script) {
    return CheckRun{.command = {"sh", "-c", script}, .workspace = true, .profile = "dev"};
  };
  const CheckRun look = shell("ls -A /cache /cache/cargo 2>/dev/null; echo end");
  const RemoveCaches cleanup{context.workspacePath()};
  const Observed wrote = context.run(shell("cd /cache && mkdir cargo && : > kept && : > cargo/config.toml"));
  if (!wrote.ran || wrote.status != 0) return failed(wrote.describe());
  const Observed next = context.run(look);
  const Observed session = context.runInSession(look);
  if (session.out.find("kept") != std::string::npos) return failed("a session has the cache of a run");
  for (const Observed* seen : {&next, &session}) {
    if (seen->out.find("config.toml") != std::string::npos) return failed("configuration was kept");
    if (!seen->out.ends_with("end\n")) return failed(seen->describe());
  }
  if (next.out.find("kept") == std::string::npos) return skipped("no cache is kept here");
  return passed();
}

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
    {"security.nested-secrets-hidden", Category::security, "A secret deep in the workspace can't be read",
     [](Context& context) {
       const Observed seen =
           context.run({.command = {"sh", "-c", "cat file nested/config/.env; echo end"}, .workspace = true});
       return printed(seen, context.secret() + "\nend\n");  // of the ordinary file
     }},
    {"security.caches-apart", Category::security, "What a run leaves in a cache reaches no session", keepsCachesApart},
};

}  // namespace

std::span<const Check> securityChecks() { return kChecks; }

}  // namespace caisson::verify
