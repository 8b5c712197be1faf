#include "rows.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

#include "peers.h"

namespace bench {
namespace {

using Arguments = std::vector<std::string>;

constexpr const char* kTrue = "/usr/bin/true";

void append(Arguments& to, const Arguments& more) { to.insert(to.end(), more.begin(), more.end()); }

/// The floor's list of steps, as far as bubblewrap supports it: its 0.8 has no overlay, no inode limits and no hidepid,
/// and makes /proc/sys and similar paths read-only by itself.
Arguments sameMounts(const Options& options, const Scratch& scratch) {
  Arguments arguments;
  std::istringstream steps(capture({{options.tools + "/floor", "--list"}, "", {}}).out);
  for (std::string group, kind, target; steps >> group >> kind >> target;) {
    if (group == "etc" && kind == "bind") append(arguments, {"--ro-bind-try", target, target});
    if (group == "tmp" && kind == "filesystem" && target != "/tmp") append(arguments, {"--tmpfs", target});
    // Inside, a link such as /proc/device-tree leads to /sys, which is not mounted there.
    if (kind != "mask" || !std::filesystem::exists(target) || std::filesystem::is_symlink(target)) continue;
    if (std::filesystem::is_directory(target))
      append(arguments, {"--tmpfs", target});
    else
      append(arguments, {"--ro-bind", "/dev/null", target});
  }
  append(arguments, {"--hostname", "sandbox", "--ro-bind", scratch.workspace(), "/workspace", "--chdir", "/workspace",
                     "--remount-ro", "/"});
  return arguments;
}

Row plainRow(const Scratch& scratch) {
  return {Contender::fork_exec,
          "fork+exec",
          {{kTrue}, scratch.workspace(), cleanEnvironment(scratch)},
          "nothing is isolated",
          ""};
}

/// `without` is a comma-separated list of parts, as floor takes it.
Row floorRow(const Options& options, const Scratch& scratch, const std::string& without) {
  Row row{without.empty() ? Contender::floor : Contender::floor_part,
          without.empty() ? "floor" : "floor, no " + without,
          {{options.tools + "/floor"}, scratch.workspace(), cleanEnvironment(scratch)},
          "no seccomp, no Landlock, capabilities kept, no limits, no init, descriptors and keyring inherited",
          ""};
  if (!without.empty()) append(row.command.argv, {"--without", without});
  row.command.argv.push_back("true");
  if (!findProgram(row.command.argv[0])) row.absent = "not built: " + row.command.argv[0];
  return row;
}

Row bubblewrapRow(const Options& options, const Scratch& scratch, bool same_mounts) {
  Row row{same_mounts ? Contender::bubblewrap_same : Contender::bubblewrap,
          same_mounts ? "bubblewrap, same mounts" : "bubblewrap",
          {{}, scratch.workspace(), cleanEnvironment(scratch)},
          "no seccomp, no Landlock, no limits of any kind, /proc without hidepid, environment, descriptors and "
          "keyring inherited, pid 1 readable",
          ""};
  row.open += same_mounts ? ", no overlay (workspace read-only)" : ", /proc not masked, no /etc, no workspace";
  const auto prefix = bubblewrapPrefix();
  if (!prefix) {
    row.absent = "bwrap is not installed";
    return row;
  }
  row.command.argv = *prefix;
  if (same_mounts) append(row.command.argv, sameMounts(options, scratch));
  row.command.argv.push_back("true");
  return row;
}

Row caissonRow(const Options& options, const Scratch& scratch, bool cgroup) {
  Row row{cgroup ? Contender::caisson : Contender::caisson_no_cgroup,
          cgroup ? "caisson full" : "caisson full, no cgroup",
          {},
          "see the layers line below: what this host could not give is named there",
          ""};
  Arguments arguments{"--profile", "bash"};
  if (!cgroup) append(arguments, options.without_cgroup);
  append(arguments, {"--", "true"});
  auto command = caissonRun(options, scratch, std::move(arguments));
  if (!command) {
    row.absent = "no such program: " + options.caisson;
  } else {
    row.command = std::move(*command);
  }
  return row;
}

/// Approves runs without the audit log in the scratch home. Only a terminal can do that: script(1) provides one.
std::string approveNoAudit(const Options& options, const Command& run) {
  const Captured granted =
      capture({{"/bin/sh", "-c",
                "(sleep 1; echo y; sleep 1) | script -qec \"'$0' approvals grant audit:off --for 1h\" /dev/null",
                options.caisson},
               run.directory,
               run.environment});
  return granted.status == 0 ? "" : "audit:off was not approved: " + granted.out + granted.err;
}

/// ROW with a policy file that switches the audit log on or off: the difference is the cost of the log, and reading a
/// file is in both.
Row auditRow(const Options& options, const Scratch& scratch, Row row, bool audited) {
  const std::string policy = scratch.path(audited ? "audit.toml" : "no-audit.toml");
  writeFile(policy, std::string("extends = \"bash\"\naudit.enabled = ") + (audited ? "true" : "false") + "\n");
  Arguments arguments{"--policy", policy};
  if (!audited) append(arguments, {"--approve", "audit:off"});
  append(arguments, {"--", "true"});
  auto command = caissonRun(options, scratch, std::move(arguments));
  if (!command) {
    row.absent = "no such program: " + options.caisson;
  } else {
    row.command = std::move(*command);
    if (!audited) row.absent = approveNoAudit(options, row.command);
  }
  return row;
}

/// The same with a directory as root, which contains `true` and its libraries.
Row imageRow(const Options& options, const Scratch& scratch) {
  Row row{Contender::caisson_image, "caisson full, image", {}, "as caisson full", ""};
  const std::string root = scratch.path("root");
  const Captured made = capture(
      {{"/bin/sh", "-c",
        "set -e; mkdir -p \"$0/bin\"; cp /usr/bin/true \"$0/bin\"; for library in $(ldd /usr/bin/true | grep -o "
        "'/[^ ]*'); do mkdir -p \"$0${library%/*}\"; cp \"$library\" \"$0$library\"; done",
        root},
       "",
       {"PATH=/usr/bin:/bin"}});
  auto command = caissonRun(options, scratch, {"--profile", "bash", "--image", root, "--", "true"});
  if (made.status != 0) {
    row.absent = "no root could be made: " + made.err;
  } else if (!command) {
    row.absent = "no such program: " + options.caisson;
  } else {
    row.command = std::move(*command);
  }
  return row;
}

/// A failing row is reported with its error and left out.
void tryOnce(Row& row) {
  if (!row.absent.empty()) return;
  const Captured result = capture(row.command);
  if (result.status == 0) {
    row.usual_ms = timeOnce(row.command).value_or(0);  // warm
    return;
  }
  row.absent = "exit status " + std::to_string(result.status);
  if (!result.err.empty()) row.absent += ": " + result.err.substr(0, result.err.find('\n'));
}

/// The cost of each part of the root; without /usr nothing can be executed, so that part always stays.
std::vector<Row> floorParts(const Options& options, const Scratch& scratch) {
  std::vector<Row> rows{plainRow(scratch)};
  for (const char* without : {"", "overlay", "tmp", "proc", "dev", "etc", "etc,dev,proc,tmp,overlay"}) {
    rows.push_back(floorRow(options, scratch, without));
  }
  rows.back().name = "floor, only /usr";
  for (Row& row : rows) tryOnce(row);
  return rows;
}

}  // namespace

std::vector<std::string> cleanEnvironment(const Scratch& scratch) {
  Arguments environment{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + scratch.path("home"),
                        "CAISSON_HOME=" + scratch.path("state")};
  // Needed for a delegated cgroup on a host with a systemd user manager.
  for (const char* name : {"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"}) {
    if (const char* value = std::getenv(name)) environment.push_back(std::string(name) + "=" + value);
  }
  return environment;
}

std::optional<Command> caissonRun(const Options& options, const Scratch& scratch, Arguments arguments) {
  const auto program = findProgram(options.caisson);
  if (!program) return std::nullopt;
  Command command{{*program, "run"}, scratch.workspace(), cleanEnvironment(scratch)};
  append(command.argv, arguments);
  return command;
}

std::optional<Arguments> bubblewrapPrefix() {
  const auto program = findProgram("bwrap");
  if (!program) return std::nullopt;
  return Arguments{*program,        "--unshare-all", "--ro-bind", "/usr",      "/usr",   "--symlink",
                   "usr/bin",       "/bin",          "--symlink", "usr/sbin",  "/sbin",  "--symlink",
                   "usr/lib",       "/lib",          "--symlink", "usr/lib64", "/lib64", "--proc",
                   "/proc",         "--dev",         "/dev",      "--tmpfs",   "/tmp",   "--die-with-parent",
                   "--new-session", "--cap-drop",    "ALL"};
}

std::vector<Row> makeRows(const Options& options, const Scratch& scratch) {
  if (options.parts) return floorParts(options, scratch);
  std::vector<Row> rows{
      plainRow(scratch),
      floorRow(options, scratch, ""),
      floorRow(options, scratch, "overlay"),
      bubblewrapRow(options, scratch, false),
      bubblewrapRow(options, scratch, true),
      caissonRow(options, scratch, true),
      auditRow(options, scratch, {Contender::caisson_audit, "caisson full, by policy file", {}, "as caisson full", ""},
               true),
      auditRow(options, scratch,
               {Contender::caisson_no_audit, "caisson full, no audit", {}, "nothing is on record", ""}, false),
      imageRow(options, scratch)};
  if (!options.without_cgroup.empty()) rows.push_back(caissonRow(options, scratch, false));
  for (const auto& [name, path] : options.peers) rows.push_back(peerRow(name, path, scratch));
  for (Row& row : rows) tryOnce(row);
  return rows;
}

void endRows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (!row.after.argv.empty()) capture(row.after);
  }
}

const Row* find(const std::vector<Row>& rows, Contender contender) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const Row& row) { return row.contender == contender && row.absent.empty(); });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace bench
