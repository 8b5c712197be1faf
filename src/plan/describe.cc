// A plan as text and as JSON.
//
// Names come from the workspace and from the policy: each is written so that it stays in its line.
#include "base/format.h"
#include "base/json_writer.h"
#include "base/path_text.h"
#include "base/safe_text.h"
#include "base/syscall_names.h"
#include "plan/plan.h"
#include "plan/syscalls.h"

namespace caisson::plan {
namespace {

std::string shown(std::string_view path) { return displayedPath(path); }

struct Line {
  std::string operator()(const MakeDirectory& s) const {
    return format("directory  {} ({})", shown(s.target), octal(s.mode));
  }
  std::string operator()(const MakeSymlink& s) const {
    return format("link       {} -> {}", shown(s.target), shown(s.to));
  }
  std::string operator()(const MakeFile& s) const {
    return format("file       {} ({} bytes, written afresh)", shown(s.target), s.content.size());
  }
  std::string operator()(const Bind& s) const {
    return format("{} {}{}{}{}{}", padded(s.writable ? "writable" : "read-only", 10), shown(s.target),
                  s.source == s.target ? "" : " from " + shown(s.source), s.executable ? "" : ", noexec",
                  s.devices ? ", device" : "", s.optional ? ", if present" : "");
  }
  std::string operator()(const MountTmpfs& s) const {
    return format("{} {} ({} KiB, {} inodes{}{})", padded(s.on_disk ? "directory" : "tmpfs", 10), shown(s.target),
                  s.bytes / 1024, s.inodes, s.on_disk ? ", on disk" : "", s.executable ? "" : ", noexec");
  }
  std::string operator()(const MountProc& s) const {
    std::string entries;
    for (const std::string& name : s.shown) entries += " " + displayedPath(name);
    const char* rungs = s.may_be_subset && s.may_be_bound ? "; if refused: processes only, or the caller's, read-only"
                        : s.may_be_subset                 ? "; if refused: processes only"
                        : s.may_be_bound                  ? "; if refused: the caller's, read-only"
                                                          : "";
    return format("proc       {} (own processes only; of the rest{}{})", shown(s.target), entries, rungs);
  }
  std::string operator()(const MountDevpts& s) const {
    return format("devpts     {} (own instance, at most {} ptys)", shown(s.target), s.most);
  }
  std::string operator()(const MountOverlay& s) const {
    std::string text = s.read_only ? format("read-only  {} from {}", shown(s.target), shown(s.lower))
                                   : format("overlay    {} over {} (at most {} KiB kept {})", shown(s.target),
                                            shown(s.lower), s.bytes / 1024, s.on_disk ? "on disk" : "in memory");
    for (const std::string& name : s.whiteouts) text += "\n               hidden: " + shown(name);
    for (const ReplacedFile& file : s.replaced) text += "\n               without credentials: " + shown(file.path);
    return text;
  }
  std::string operator()(const MaskPath& s) const { return format("masked     {}", shown(s.target)); }
  std::string operator()(const CoverFile& s) const { return format("values     {} of the sandbox", shown(s.target)); }
  std::string operator()(const RootLayer& s) const {
    return format("root layer {}{}", shown(s.source), s.above ? ", changes of a session" : "");
  }
  std::string operator()(const MountRoot& s) const {
    return format("root       / from these layers, {}", s.writable ? "writable: changes are kept apart" : "read-only");
  }
  std::string operator()(const MoveRoot& s) const { return format("moved      / to {}", shown(s.target)); }
  std::string operator()(const ReadOnlyRoot&) const { return "read-only  / from here on"; }
  std::string operator()(const SetKernelQuota& s) const { return format("quota      {} = {}", s.name, s.value); }
};

std::string accessNames(std::uint64_t access) {
  static constexpr std::string_view kNames[] = {
      "execute",   "write",       "read",      "list",       "remove-dir", "remove", "make-char", "make-dir",
      "make-file", "make-socket", "make-fifo", "make-block", "make-link",  "refer",  "truncate",  "ioctl"};
  std::string text;
  for (std::size_t bit = 0; bit < std::size(kNames); ++bit) {
    if ((access >> bit & 1U) != 0) text += (text.empty() ? "" : " ") + std::string(kNames[bit]);
  }
  return text;
}

std::string actionText(Action action) {
  if (action == kObserve) return "allow, reported";
  if (action == kAnswer) return "answered by the supervisor";
  if (action == kServe) return "made by caisson";
  switch (action.kind) {
    case ActionKind::allow: return "allow";
    case ActionKind::refuse: return errnoName(action.error);
    case ActionKind::notify: return errnoName(action.error) + ", reported";
    case ActionKind::pretend: return "answered with success, not made";
  }
  return "";
}

/// The filter's rules; a launch with the built-in filter has only the compiled program.
std::optional<SyscallFilter> rulesOf(const Plan& plan) {
  if (!plan.builtin_syscalls) return plan.syscalls;
  auto filter = filterForFull(policy::Policy{}, {});
  return filter ? std::optional<SyscallFilter>(std::move(*filter)) : std::nullopt;
}

std::string seconds(const std::optional<double>& value) { return value ? format("{} s", *value) : "none"; }

}  // namespace

std::string describe(const Plan& plan) {
  std::string text;
  const auto head = [&](std::string_view title) { text += format("\n{}\n", title); };
  text += "command    ";
  for (const std::string& word : plan.command) text += shown(word) + " ";
  text += format("\ndirectory  {}\n", shown(plan.working_directory));
  head("layers");
  for (const auto& [name, state] : plan.layers) text += format("  {} {}\n", padded(name, 18), safeLine(state));
  for (const std::string& warning : plan.warnings) text += format("  warning: {}\n", safeLine(warning));
  for (const auto* notices : {&plan.covered, &plan.notices}) {
    for (const std::string& notice : *notices) text += format("  note: {}\n", safeLine(notice));
  }
  head("identity");
  text += format("  uid {} and gid {} inside are {} and {} on the host\n", plan.identity.inside_uid,
                 plan.identity.inside_gid, plan.identity.outside_uid, plan.identity.outside_gid);
  if (plan.identity.hasMoreIds()) {
    text += format("  uids 1 to {} inside are {} and up, gids 1 to {} are {} and up\n", plan.identity.more_uids.count,
                   plan.identity.more_uids.first, plan.identity.more_gids.count, plan.identity.more_gids.first);
  }
  head("file tree");
  for (const Step& step : plan.steps) text += "  " + std::visit(Line{}, step) + "\n";
  if (!plan.secret_kinds.empty()) head("hidden files");
  for (const auto& [path, kind] : plan.secret_kinds)
    text += format("  {} {}\n", padded(shown(path), 40), safeLine(kind));
  head("landlock");
  for (const LandlockRule& rule : plan.landlock.rules)
    text += format("  {} {}\n", padded(shown(rule.path), 24), accessNames(rule.access));
  head("limits");
  text += format("  wall time {}, cpu time {}, output {} bytes\n", seconds(plan.wall_seconds),
                 seconds(plan.cpu_seconds), plan.output_bytes);
  if (plan.memory_bytes > 0)
    text += format("  memory {} bytes, processes and threads {}\n", plan.memory_bytes, plan.max_tasks);
  for (const ResourceLimit& limit : plan.rlimits) text += format("  {} {}\n", padded(limit.name, 12), limit.value);
  head("environment");
  for (const std::string& variable : plan.environment) text += "  " + safeLine(variable) + "\n";
  if (const auto filter = rulesOf(plan)) {
    head("system calls");
    std::string allowed, answered, partly, refused;
    for (const SyscallRule& rule : filter->rules) {
      const std::string name(syscallName(rule.number));
      if (!rule.branches.empty()) {
        partly += " " + name;
      } else if (rule.otherwise.kind == ActionKind::allow) {
        allowed += " " + name;
      } else if (rule.otherwise == kAnswer || rule.otherwise == kServe || rule.otherwise == kPretend) {
        answered += " " + name;
      } else {
        refused += " " + name;
      }
    }
    text += format("  allowed:{}\n  answered by caisson:{}\n  by argument:{}\n  refused:{}\n  all others: {}\n",
                   allowed, answered, partly, refused, actionText(filter->unlisted));
  }
  return text;
}

static void writeLimits(const Plan& plan, JsonWriter& json) {
  json.key("limits").beginObject().key("output_bytes").number(plan.output_bytes);
  if (plan.memory_bytes > 0) json.key("memory_bytes").number(plan.memory_bytes);
  if (plan.max_tasks > 0) json.key("max_tasks").number(plan.max_tasks);
  if (plan.wall_seconds) json.key("wall_seconds").number(*plan.wall_seconds);
  if (plan.cpu_seconds) json.key("cpu_seconds").number(*plan.cpu_seconds);
  for (const ResourceLimit& limit : plan.rlimits) json.key(limit.name).number(limit.value);
  json.end();
  if (!plan.cgroup) return;
  json.key("cgroup").beginObject();
  if (plan.cgroup->memory) json.key("memory_bytes").number(*plan.cgroup->memory);
  if (plan.cgroup->pids) json.key("max_tasks").number(*plan.cgroup->pids);
  if (plan.cgroup->cpus) json.key("cpus").number(*plan.cgroup->cpus);
  json.end();
}

static void writeSyscalls(const Plan& plan, JsonWriter& json) {
  const auto filter = rulesOf(plan);
  json.key("syscalls").beginObject();
  for (const SyscallRule& rule : filter ? filter->rules : std::vector<SyscallRule>{}) {
    const std::string otherwise = actionText(rule.otherwise);
    json.key(syscallName(rule.number)).string(rule.branches.empty() ? otherwise : "by argument, else " + otherwise);
  }
  json.end();
  if (filter) json.key("unlisted_syscalls").string(actionText(filter->unlisted));
}

std::string describeJson(const Plan& plan) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.beginObject().key("command").strings(plan.command);
  json.key("working_directory").string(plan.working_directory).key("layers").beginObject();
  for (const auto& [name, state] : plan.layers) json.key(name).string(state);
  json.end().key("warnings").strings(plan.warnings).key("notices").strings(plan.allNotices());
  const Identity& identity = plan.identity;
  json.key("identity").beginObject();
  json.key("inside_uid").number(identity.inside_uid).key("inside_gid").number(identity.inside_gid);
  json.key("outside_uid").number(identity.outside_uid).key("outside_gid").number(identity.outside_gid);
  json.key("subordinate_uids").number(identity.more_uids.count);
  json.key("subordinate_gids").number(identity.more_gids.count).end();
  json.key("tree").beginArray();
  for (const Step& step : plan.steps) json.string(std::visit(Line{}, step));
  json.end().key("hidden_files").beginObject();
  for (const auto& [path, kind] : plan.secret_kinds) json.key(path).string(kind);
  json.end().key("landlock").beginArray();
  for (const LandlockRule& rule : plan.landlock.rules) {
    json.beginObject().key("path").string(rule.path).key("access").string(accessNames(rule.access)).end();
  }
  json.end();
  writeLimits(plan, json);
  json.key("environment").strings(plan.environment);
  writeSyscalls(plan, json);
  return json.end().text() + "\n";
}

}  // namespace caisson::plan
