#include "verify/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "broker/start.h"
#include "policy/model.h"
#include "sys/state_home.h"
#include "verify/doctor_remedies.h"

namespace caisson::verify {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kLittleSpace = 1024 * kMiB;
constexpr std::uint64_t kTooLittleSpace = 64 * kMiB;  // less: nothing of a payload is kept on that disk
constexpr std::uint64_t kNoSpace = 2 * kMiB;          // less: not even an audit record
constexpr std::uint64_t kFewInodes = 10000;

using host::Probes;
using sys::Attempt;

std::string because(const Attempt& attempt) { return attempt.tried() ? errnoName(attempt.sys_errno) : "not tried"; }

void addTo(std::string& list, std::string_view word) {
  if (!list.empty()) list += ", ";
  list += word;
}

struct Named {
  std::string_view name;
  Attempt attempt;
};

/// The failed attempts with their errno: "network (EPERM), ipc (EPERM)".
template <std::size_t kCount>
std::string failures(const std::array<Named, kCount>& attempts) {
  std::string list;
  for (const Named& one : attempts) {
    if (!one.attempt.ok()) addTo(list, std::string(one.name) + " (" + because(one.attempt) + ")");
  }
  return list;
}

/// The errno of the first attempt that was made and failed.
template <std::size_t kCount>
int firstErrno(const std::array<Named, kCount>& attempts) {
  for (const Named& one : attempts) {
    if (one.attempt.tried() && !one.attempt.ok()) return one.attempt.sys_errno;
  }
  return 0;
}

DoctorItem kernelItem(const Probes& probes) {
  const std::string& release = probes.kernel.release;
  if (probes.kernel.atLeast(kMinimumMajor, kMinimumMinor)) return {"kernel", ItemState::pass, release, {}};
  return {"kernel", ItemState::fail, release + "; missing: " + missingInKernel(probes.kernel),
          "caisson needs Linux 6.1 or newer: upgrade the kernel (Debian 12, Ubuntu 24.04 and RHEL 10 have one)."};
}

DoctorItem userNamespaceItem(const Probes& probes) {
  const std::array<Named, 2> attempts{{{"user", probes.namespaces.user}, {"id map", probes.namespaces.id_map}}};
  if (failures(attempts).empty()) return {"user-namespaces", ItemState::pass, "made and mapped", {}};
  const Diagnosis why = whyNamespacesFail(probes, firstErrno(attempts));
  return {"user-namespaces", ItemState::fail, why.cause + ": " + failures(attempts), why.remedy};
}

DoctorItem namespaceItem(const Probes& probes) {
  const host::NamespaceProbe& tried = probes.namespaces;
  if (!tried.id_map.ok()) {
    return {"namespaces", ItemState::fail, "not tried without a user namespace", "See user-namespaces."};
  }
  const std::array<Named, 5> needed{
      {{"pid", tried.pid}, {"mount", tried.mount}, {"network", tried.network}, {"ipc", tried.ipc}, {"uts", tried.uts}}};
  const std::array<Named, 2> wanted{{{"cgroup", tried.cgroup}, {"time", tried.time}}};
  if (const std::string missing = failures(needed); !missing.empty()) {
    const Diagnosis why = whyNamespacesFail(probes, firstErrno(needed));
    return {"namespaces", ItemState::fail, why.cause + ": " + missing, why.remedy};
  }
  if (const std::string missing = failures(wanted); !missing.empty()) {
    return {"namespaces", ItemState::degraded, "without " + missing,
            "Sandboxes run without them and say so; a distribution kernel of 6.1 or newer has both."};
  }
  if (!tried.hostname.ok()) {
    return {"namespaces", ItemState::degraded, "all, but sethostname is refused (" + because(tried.hostname) + ")",
            "Sandboxes keep this host's name and say so; a seccomp profile that allows sethostname changes that."};
  }
  return {"namespaces", ItemState::pass, "pid, mount, network, ipc, uts, cgroup, time", {}};
}

DoctorItem rootItem(const Probes& probes) {
  const host::NamespaceProbe& tried = probes.namespaces;
  if (!tried.mount.ok()) {
    return {"own-root", ItemState::fail, "not tried without a mount namespace", "See namespaces."};
  }
  const std::array<Named, 3> needed{
      {{"tmpfs", tried.mount_tmpfs}, {"proc", tried.mount_proc}, {"pivot_root", tried.pivot_root}}};
  const std::string missing = failures(needed);
  if (missing.empty()) return {"own-root", ItemState::pass, "tmpfs, fresh /proc, pivot_root", {}};
  if (tried.mount_tmpfs.ok() && tried.pivot_root.ok() && tried.mount_proc.sys_errno == EPERM) {
    return {"own-root", ItemState::fail, "refused: a fresh /proc (EPERM), since parts of the one here are covered",
            procRemedy(probes)};
  }
  return {"own-root", ItemState::fail, "refused: " + missing, mountRemedy(probes, firstErrno(needed))};
}

DoctorItem mountApiItem(const Probes& probes) {
  const host::NamespaceProbe& tried = probes.namespaces;
  if (!tried.mount.ok())
    return {"mount-api", ItemState::fail, "not tried without a mount namespace", "See namespaces."};
  const std::array<Named, 4> wanted{{{"fsopen", tried.fsopen},
                                     {"open_tree", tried.open_tree},
                                     {"mount_setattr", tried.mount_setattr},
                                     {"move_mount", tried.move_mount}}};
  const std::string missing = failures(wanted);
  if (missing.empty()) return {"mount-api", ItemState::pass, "fsopen, open_tree, mount_setattr, move_mount", {}};
  // There is no fallback to mount(2): it takes string paths, which the descriptor-based calls avoid.
  return {"mount-api", ItemState::fail, "refused: " + missing, mountRemedy(probes, firstErrno(wanted))};
}

DoctorItem overlayItem(const Probes& probes) {
  const host::NamespaceProbe& tried = probes.namespaces;
  if (!tried.mount_tmpfs.ok()) {
    return {"overlay", ItemState::degraded, "not tried without a mount namespace", "See own-root."};
  }
  if (!tried.mount_overlay.ok()) {
    const std::string remedy = tried.mount_overlay.sys_errno == ENODEV
                                   ? "Load the module:\n$ sudo modprobe overlay"
                                   : mountRemedy(probes, tried.mount_overlay.sys_errno);
    return {"overlay", ItemState::degraded,
            "refused: " + because(tried.mount_overlay) +
                "; workspaces only as none, ro or rw, and sessions only in the landlock tier",
            remedy};
  }
  if (!tried.tmpfs_user_xattr.ok()) {
    return {"overlay", ItemState::degraded, "works, but tmpfs has no user attributes before 6.6: layers go to disk",
            "Nothing needs doing; Linux 6.6 or newer can keep overlay layers in memory."};
  }
  const std::string& disk = probes.home.file_system;  // see stateItem
  const bool only_memory = disk == "overlay" || disk == "nfs";
  return {"overlay",
          ItemState::pass,
          only_memory ? "in user namespaces, in memory; not on disk, see state-directory"
                      : "in user namespaces, on disk and in memory",
          {}};
}

DoctorItem seccompItem(const Probes& probes) {
  const host::SeccompProbe& tried = probes.seccomp;
  if (!tried.filter.ok()) {
    return {"seccomp", ItemState::fail, "filters refused: " + because(tried.filter),
            insideContainer(probes) ? containerRemedy(probes) : "Use a kernel built with CONFIG_SECCOMP_FILTER."};
  }
  if (!tried.user_notify.ok()) {
    // Only one listener per task tree: a container manager that has one (EBUSY) prevents ours.
    return {"seccomp", ItemState::degraded,
            "filters work; notifications refused: " + because(tried.user_notify) + ", blocked calls go unrecorded",
            tried.user_notify.sys_errno == EBUSY
                ? "Another program already listens to this process: run caisson outside it."
            : insideContainer(probes) ? containerRemedy(probes)
                                      : "Use a kernel built with CONFIG_SECCOMP_FILTER, 6.1 or newer."};
  }
  if (!tried.wait_killable.ok()) {
    return {"seccomp", ItemState::degraded, "filters and notifications, but signals can repeat one",
            "Linux 5.19 or newer has SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV."};
  }
  return {"seccomp", ItemState::pass, "filters, notifications", {}};
}

DoctorItem landlockItem(const Probes& probes) {
  if (probes.landlock_abi == 0) {
    return {"landlock", ItemState::fail, "not available: " + because(probes.landlock), landlockRemedy(probes)};
  }
  const std::string abi = "ABI " + std::to_string(probes.landlock_abi);
  const std::array<Named, 1> needed{{{"landlock_restrict_self", probes.landlock_restrict}}};
  if (const std::string refused = failures(needed); !refused.empty()) {
    return {"landlock", ItemState::fail, abi + ", but refused: " + refused,
            "Run caisson outside the filter that refuses it."};
  }
  if (probes.landlock_abi < 6) {
    return {"landlock", ItemState::degraded, abi + ": no scoping of signals and abstract sockets",
            "Linux 6.12 or newer has it; with separate namespaces a sandbox hardly needs it."};
  }
  return {"landlock", ItemState::pass, abi, {}};
}

DoctorItem systemCallItem(const Probes& probes) {
  const host::SyscallProbe& tried = probes.syscalls;
  const std::array<Named, 2> needed{{{"pidfd_open", tried.pidfd_open}, {"close_range", tried.close_range}}};
  const std::array<Named, 2> wanted{{{"clone3", tried.clone3}, {"openat2", tried.openat2}}};
  const std::string remedy = insideContainer(probes)
                                 ? containerRemedy(probes)
                                 : "Run caisson outside the filter that refuses them, or upgrade the kernel.";
  if (const std::string missing = failures(needed); !missing.empty()) {
    return {"system-calls", ItemState::fail, "refused: " + missing, remedy};
  }
  if (const std::string missing = failures(wanted); !missing.empty()) {
    return {"system-calls", ItemState::degraded, "refused: " + missing + "; slower ways are used", remedy};
  }
  return {"system-calls", ItemState::pass, "clone3, pidfd_open, openat2, close_range", {}};
}

DoctorItem cgroupItem(const Probes& probes) {
  std::string usable;
  std::string missing;
  for (const std::string_view controller : {"memory", "pids", "cpu"}) {
    addTo(probes.cgroup.usable(controller) ? usable : missing, controller);
  }
  std::string found(name(probes.cgroup.layout));
  if (!usable.empty()) found += "; ours to use: " + usable;
  if (missing.empty()) return {"cgroup", ItemState::pass, found, {}};
  found += "; not: " + missing + ". Limits rest on rlimits and supervision there";
  return {"cgroup", ItemState::degraded, found, cgroupRemedy(probes)};
}

std::string megabytes(std::uint64_t bytes) {
  if (bytes >= 10 * 1024 * kMiB) return std::to_string(bytes / (1024 * kMiB)) + " GiB";
  return std::to_string(bytes / kMiB) + " MiB";
}

DoctorItem stateItem(const Probes& probes) {
  const host::DiskProbe& disk = probes.home;
  const std::string where = disk.path + " (" + disk.file_system + ")";
  const std::string move =
      "Point CAISSON_HOME at a directory of yours on ext4, xfs or btrfs:\n"
      "$ export CAISSON_HOME=/path/to/directory";
  if (!disk.writable.ok()) {
    return {"state-directory", ItemState::fail, where + " is not writable: " + because(disk.writable), move};
  }
  const bool out_of_inodes = disk.counts_inodes && disk.free_inodes < 100;
  if (disk.free_bytes < kNoSpace || out_of_inodes) {
    return {"state-directory", ItemState::fail, where + (out_of_inodes ? " has no inodes left" : " is full"),
            "Free some, or remove what crashed runs left:\n$ caisson clean"};
  }
  if (disk.free_bytes < kTooLittleSpace) {
    const bool small = disk.total_bytes < kLittleSpace;
    return {"state-directory", ItemState::degraded,
            where + " has " + megabytes(disk.free_bytes) + " free" +
                (small ? " of " + megabytes(disk.total_bytes) + " in all" : "") +
                ": directories and changes of sandboxes are kept in memory",
            small ? move : "Free some, or remove what crashed runs left:\n$ caisson clean"};
  }
  // The kernel accepts neither as the upper layer of an overlay.
  if (disk.file_system == "overlay" || disk.file_system == "nfs") {
    return {"state-directory", ItemState::degraded, where + " can't hold overlay layers: sessions live in memory",
            insideContainer(probes) ? volumeRemedy(probes) : move};
  }
  if (disk.user_xattr.tried() && !disk.user_xattr.ok()) {
    return {"state-directory", ItemState::degraded,
            where + " has no user attributes (" + because(disk.user_xattr) + "): sessions live in memory", move};
  }
  const std::string free = where + ", " + megabytes(disk.free_bytes) + " free";
  if (disk.free_bytes < kLittleSpace) {
    return {"state-directory", ItemState::degraded, free, "Sessions and images need more: free some space."};
  }
  if (disk.counts_inodes && disk.free_inodes < kFewInodes) {
    return {"state-directory", ItemState::degraded, free + ", but " + std::to_string(disk.free_inodes) + " inodes",
            "Sessions and images need more: remove small files."};
  }
  return {"state-directory", ItemState::pass, free, {}};
}

DoctorItem containerItem(const Probes& probes) {
  if (!insideContainer(probes)) return {"container", ItemState::pass, "not inside one", {}};
  std::string signs;
  for (const std::string& sign : probes.obstacles.container_signs) addTo(signs, sign);
  return {"container",
          ItemState::pass,
          std::string(name(host::engineOf(probes.obstacles.container_signs))) + ": " + signs,
          {}};
}

/// The availability of a level that needs all of `names`.
LevelVerdict verdict(std::string level, const DoctorReport& report, std::initializer_list<std::string_view> names,
                     std::string_view note) {
  std::string missing;
  for (const std::string_view name : names) {
    const DoctorItem* item = report.item(name);
    if (item == nullptr || item->state == ItemState::fail) addTo(missing, name);
  }
  if (!missing.empty()) return {std::move(level), false, "needs " + missing};
  return {std::move(level), true, std::string(note)};
}

}  // namespace

std::string_view name(ItemState state) {
  switch (state) {
    case ItemState::pass: return "pass";
    case ItemState::degraded: return "degraded";
    case ItemState::fail: return "fail";
  }
  return "fail";
}

const DoctorItem* DoctorReport::item(std::string_view wanted) const {
  const auto found = std::ranges::find(items, wanted, &DoctorItem::name);
  return found == items.end() ? nullptr : &*found;
}

const LevelVerdict* DoctorReport::level(std::string_view wanted) const {
  const auto found = std::ranges::find(levels, wanted, &LevelVerdict::name);
  return found == levels.end() ? nullptr : &*found;
}

DoctorReport judge(const Probes& probes) {
  DoctorReport report;
  report.host = "Linux " + probes.kernel.release + " on " + probes.machine + ", uid " + std::to_string(probes.uid);
  for (auto* make : {kernelItem, userNamespaceItem, namespaceItem, rootItem, mountApiItem, overlayItem, seccompItem,
                     landlockItem, systemCallItem, cgroupItem, stateItem, containerItem}) {
    report.items.push_back(make(probes));
  }
  // `full` has its own root, so it needs Landlock only if a rule depends on it; `process` sees the host's root through
  // Landlock, so Landlock is its boundary.
  report.levels.push_back(
      verdict("full", report,
              {"kernel", "user-namespaces", "namespaces", "own-root", "mount-api", "seccomp", "system-calls",
               "state-directory", probes.landlock_abi == 0 ? "kernel" : "landlock"},  // used if available
              probes.landlock_abi == 0 ? "policies whose rules rest on Landlock are refused" : ""));
  report.levels.push_back(verdict("process", report,
                                  {"kernel", "user-namespaces", "namespaces", "own-root", "mount-api", "landlock",
                                   "seccomp", "system-calls", "state-directory"},
                                  ""));
  report.levels.push_back(verdict("landlock", report, {"kernel", "landlock", "seccomp", "state-directory"},
                                  "only when asked for by name: no namespaces, so the host's processes, network "
                                  "addresses and file names stay visible"));
  report.levels.push_back(verdict("none", report, {"kernel", "state-directory"},
                                  "only with an owner's approval: protects nothing, is recorded"));
  report.full_available = report.levels.front().available;
  return report;
}

/// Whether the broker program is installed; not a property of the host.
static DoctorItem brokerItem(const std::string& program) {
  const std::string path = broker::program(program);
  if (!path.empty()) return {"credential-broker", ItemState::pass, path, {}};
  return {"credential-broker", ItemState::degraded, "caisson-broker is not installed: network.credentials are refused",
          "Install caisson-broker in libexec/caisson or beside caisson; building it needs OpenSSL 3 (libssl-dev)."};
}

/// "without hostname (kept: EPERM)": what a started sandbox lacks.
static std::string weakerLayers(const Trial& trial) {
  std::string list;
  for (const char* layer : {"hostname", "proc"}) {
    if (const auto found = trial.layers.find(layer); found != trial.layers.end()) {
      addTo(list, found->first + " (" + found->second + ")");
    }
  }
  return list;
}

/// The error of a run: what failed in the first line, its hint as the remedy.
static DoctorItem launchItem(const Trial& full) {
  const std::string weaker = weakerLayers(full);
  if (full.started && full.rungs.empty()) {
    if (weaker.empty()) return {"launch", ItemState::pass, "`caisson run` starts a sandbox at level full", {}};
    return {"launch", ItemState::degraded, "`caisson run` starts a sandbox at level full with weaker " + weaker,
            "Nothing needs doing: every result says so. See docs/containers.md for what the host would have to allow."};
  }
  Error error = full.error.value_or(Error{});
  std::string remedy = std::exchange(error.hint, "");
  if (!full.rungs.empty()) {
    remedy =
        "See own-root; or use the weaker rung:\n$ caisson run --allow-weaker " + full.rungs.front() + " -- COMMAND";
  }
  if (remedy.empty() || remedy.find("caisson doctor") != std::string::npos) remedy = "See the items above that failed.";
  std::string found = error.message();
  std::ranges::replace(found, '\n', ' ');
  return {"launch", full.started ? ItemState::degraded : ItemState::fail, "`caisson run` is refused: " + found, remedy};
}

static void applyTrial(const Trial& trial, LevelVerdict& level) {
  level.available = trial.started && trial.rungs.empty();
  level.allow_weaker = trial.started ? trial.rungs : std::vector<std::string>();
  if (level.available) {
    if (level.reason.starts_with("needs ")) level.reason.clear();
    return;
  }
  Error error = trial.error.value_or(Error{});
  error.hint.clear();
  std::string reason = error.message();
  std::ranges::replace(reason, '\n', ' ');
  if (!level.reason.starts_with("needs ")) level.reason.clear();
  level.reason += (level.reason.empty() ? "" : ": ") + reason;
  if (!level.allow_weaker.empty()) level.reason += "; it starts with --allow-weaker " + level.allow_weaker.front();
}

void applyTrials(const Trial& full, const Trial& process, const Trial& landlock, DoctorReport& report) {
  report.items.push_back(launchItem(full));
  for (LevelVerdict& level : report.levels) {
    if (level.name == "full") applyTrial(full, level);
    if (level.name == "process") applyTrial(process, level);
    if (level.name == "landlock") applyTrial(landlock, level);
  }
  report.full_available = full.started && full.rungs.empty();
}

static Trial tryWith(Policy policy, std::string_view key, std::string_view value) {
  if (auto set = policy.set(key, value); !set) return {.error = set.error()};
  if (value == "landlock") policy.model().filesystem.workspace.mode = policy::WorkspaceMode::none;
  return tryLaunch(policy);
}

DoctorReport diagnose(const std::string& program, const Policy& policy) {
  DoctorReport report = judge(host::probeHost(sys::stateHome()));
  applyTrials(tryWith(policy, "isolation.level", "full"), tryWith(policy, "isolation.level", "process"),
              tryWith(policy, "isolation.tier", "landlock"), report);
  report.items.push_back(brokerItem(program));
  return report;
}

}  // namespace caisson::verify
