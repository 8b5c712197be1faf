#include "verify/doctor.h"
#include "support/conforms.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <sstream>

namespace caisson::verify {
namespace {

using host::Probes;
using sys::Attempt;

constexpr Attempt kOk{0};

/// An ordinary user on a good host: Linux 6.12, cgroup v2 delegated, no obstacles.
Probes goodHost() {
  Probes probes;
  probes.kernel = host::parseKernelRelease("6.12.9-amd64");
  probes.machine = "x86_64";
  probes.uid = 1000;
  probes.landlock_abi = 6;
  probes.landlock = kOk;
  probes.landlock_restrict = kOk;
  probes.seccomp = {kOk, kOk, kOk};
  probes.namespaces = {kOk, kOk, kOk, kOk, kOk, kOk, kOk, kOk, kOk, kOk, kOk, kOk, kOk, kOk, kOk, kOk, kOk, kOk, kOk};
  probes.syscalls = {kOk, kOk, kOk, kOk};
  probes.cgroup.layout = sys::CgroupLayout::v2;
  probes.cgroup.hierarchies = {{.v2 = true,
                                .controllers = "cpu io memory pids",
                                .directory = "/sys/fs/cgroup/user",
                                .make_child = kOk,
                                .procs_writable = true,
                                .subtree_control = {}}};
  probes.obstacles.max_user_namespaces = 15000;
  probes.obstacles.seccomp_mode = 0;
  probes.home = {"/home/me", "ext4", kOk, kOk, std::uint64_t{50} << 30, 1000000, true};
  probes.systemd = probes.systemd_user_manager = true;
  return probes;
}

Probes withoutNamespaces(Probes probes, int sys_errno) {
  probes.namespaces = {};
  probes.namespaces.user = {sys_errno};
  return probes;
}

Probes insideDocker() {
  Probes probes = withoutNamespaces(goodHost(), EPERM);
  probes.obstacles.container_signs = {"/.dockerenv"};
  probes.obstacles.seccomp_mode = 2;
  probes.syscalls.clone3 = {ENOSYS};
  probes.cgroup = {};
  probes.home.file_system = "overlay";
  return probes;
}

Probes ubuntu2404() {
  Probes probes = goodHost();
  probes.namespaces = {};
  probes.namespaces.user = kOk;
  probes.namespaces.id_map = {EACCES};
  probes.obstacles.apparmor_restrict_unprivileged_userns = 1;
  probes.obstacles.apparmor_label = "unconfined";
  probes.obstacles.apparmor_profile_file = "/etc/apparmor.d/caisson";
  probes.obstacles.program = "/usr/bin/caisson";
  return probes;
}

Probes oldKernel() {
  Probes probes = goodHost();
  probes.kernel = host::parseKernelRelease("5.10.0-28-amd64");
  probes.landlock_abi = 0;
  probes.landlock = {ENOSYS};
  return probes;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

const DoctorItem& item(const DoctorReport& report, std::string_view name) {
  const DoctorItem* found = report.item(name);
  if (found == nullptr) throw std::runtime_error("no such item");
  return *found;
}

TEST(Doctor, AGoodHostPassesEverything) {
  const DoctorReport report = judge(goodHost());
  for (const DoctorItem& one : report.items) {
    EXPECT_EQ(one.state, ItemState::pass) << one.name << ": " << one.found;
    EXPECT_EQ(one.remedy, "") << one.name;
  }
  for (const LevelVerdict& level : report.levels) EXPECT_TRUE(level.available) << level.name;
  EXPECT_TRUE(report.full_available);
}

TEST(Doctor, NamesTheSysctlThatForbidsUserNamespaces) {
  Probes probes = withoutNamespaces(goodHost(), ENOSPC);
  probes.obstacles.max_user_namespaces = 0;
  DoctorReport report = judge(probes);
  EXPECT_FALSE(report.full_available);
  EXPECT_TRUE(has(item(report, "user-namespaces").remedy, "$ sudo sysctl -w user.max_user_namespaces=15000"));

  probes = withoutNamespaces(goodHost(), EPERM);
  probes.obstacles.unprivileged_userns_clone = 0;
  report = judge(probes);
  EXPECT_TRUE(has(item(report, "user-namespaces").remedy, "$ sudo sysctl -w kernel.unprivileged_userns_clone=1"));
  EXPECT_FALSE(report.level("process")->available);
  EXPECT_TRUE(has(report.level("full")->reason, "user-namespaces"));
  EXPECT_TRUE(report.level("landlock")->available) << "the tier without namespaces is left";
}

TEST(Doctor, DetectsAProfileThatDoesNotGrantUserNamespaces) {
  Probes probes = withoutNamespaces(goodHost(), EACCES);
  probes.obstacles.apparmor_label = "another-program (enforce)";
  const DoctorReport report = judge(probes);
  const DoctorItem& found = item(report, "user-namespaces");
  EXPECT_TRUE(has(found.found, "another-program"));
  EXPECT_TRUE(has(found.remedy, "apparmor_parser -r"));
  EXPECT_FALSE(has(found.remedy, "sysctl"));
  probes.obstacles.apparmor_label = "caisson (unconfined)";
  EXPECT_FALSE(has(item(judge(probes), "user-namespaces").found, "AppArmor")) << "such a profile forbids nothing";
}

TEST(Doctor, DetectsAppArmorOfUbuntu2404) {
  const DoctorReport report = judge(ubuntu2404());
  const DoctorItem& found = item(report, "user-namespaces");
  EXPECT_EQ(found.state, ItemState::fail);
  EXPECT_TRUE(has(found.found, "AppArmor"));
  EXPECT_TRUE(has(found.remedy, "apparmor_parser -r"));
  EXPECT_TRUE(has(found.remedy, "kernel.apparmor_restrict_unprivileged_userns=0"));
  EXPECT_TRUE(has(found.remedy, "every program on this machine")) << "says what the sysctl weakens";
  EXPECT_FALSE(report.full_available);
}

TEST(Doctor, NamesTheFlagsForDocker) {
  const DoctorReport report = judge(insideDocker());
  const std::string& remedy = item(report, "user-namespaces").remedy;
  for (const char* flag : {"seccomp=", "apparmor=unconfined", "systempaths=unconfined"}) EXPECT_TRUE(has(remedy, flag));
  EXPECT_EQ(item(report, "system-calls").state, ItemState::degraded) << "clone does what clone3 would";
  EXPECT_TRUE(has(item(report, "state-directory").remedy, "docker run -v"));
  EXPECT_TRUE(has(item(report, "container").found, "/.dockerenv"));
  EXPECT_FALSE(report.full_available);
}

TEST(Doctor, AMaskedProcInAContainerNeedsUnmaskedSystemPaths) {
  CONFORMS("R-USE-4");
  Probes probes = goodHost();
  probes.obstacles.container_signs = {"/.dockerenv"};
  probes.namespaces.mount_proc = {EPERM};
  const DoctorReport report = judge(probes);
  EXPECT_TRUE(has(item(report, "own-root").found, "proc (EPERM)"));
  EXPECT_TRUE(has(item(report, "own-root").remedy, "systempaths=unconfined"));
  EXPECT_FALSE(report.full_available);
  EXPECT_FALSE(report.level("process")->available) << "it mounts a new /proc too";
}

TEST(Doctor, NamesTheRemedyForPodmanAndKubernetes) {
  Probes probes = insideDocker();
  probes.obstacles.container_signs = {"/run/.containerenv"};
  EXPECT_TRUE(has(item(judge(probes), "user-namespaces").remedy, "unmask=ALL"));
  probes.obstacles.container_signs = {"cgroup of process 1 names kubepods"};
  EXPECT_TRUE(has(item(judge(probes), "user-namespaces").remedy, "procMount"));
}

TEST(Doctor, DetectsTheContainerEngine) {
  using host::Engine, host::engineOf;
  EXPECT_EQ(engineOf({}), Engine::none);
  EXPECT_EQ(engineOf({"/.dockerenv"}), Engine::docker);
  EXPECT_EQ(engineOf({"/run/.containerenv", "container=podman"}), Engine::podman);
  EXPECT_EQ(engineOf({"root file system below containerd"}), Engine::containerd);
  EXPECT_EQ(engineOf({"/.dockerenv", "KUBERNETES_SERVICE_HOST"}), Engine::kubernetes);
  EXPECT_EQ(engineOf({"container=systemd-nspawn"}), Engine::nspawn);
  EXPECT_EQ(engineOf({"CAISSON: a caisson sandbox"}), Engine::caisson);
  EXPECT_EQ(engineOf({"container=oci"}), Engine::other);
}

TEST(Doctor, GivesNoCommandForACgroupThatTheEngineMountsReadOnly) {
  Probes probes = insideDocker();
  probes.cgroup = goodHost().cgroup;
  probes.cgroup.hierarchies[0].make_child = {EROFS};
  probes.cgroup.hierarchies[0].procs_writable = false;
  const std::string remedy = item(judge(probes), "cgroup").remedy;
  EXPECT_FALSE(has(remedy, "sudo")) << remedy;
  EXPECT_TRUE(has(remedy, "docker run --memory")) << remedy;
}

TEST(Doctor, ASmallStateDirectoryIsNotFull) {
  Probes probes = goodHost();
  probes.home = {"/dev/shm/caisson", "tmpfs", kOk, kOk, 63 << 20, 1000000, true, 64 << 20};
  const DoctorReport report = judge(probes);
  const DoctorItem& found = item(report, "state-directory");
  EXPECT_EQ(found.state, ItemState::degraded);
  EXPECT_TRUE(has(found.found, "63 MiB free of 64 MiB")) << found.found;
  EXPECT_FALSE(has(found.found, "full")) << found.found;
  EXPECT_TRUE(report.full_available);
}

TEST(Doctor, VerdictFollowsTheTrialRuns) {
  Trial refused;
  refused.error = plainError(Stage::mounts, "fsmount", "/proc", "covered", "unmask it");
  Trial started;
  started.started = true;
  Trial bound = refused;
  bound.started = true;
  bound.rungs = {"proc_bound"};
  DoctorReport report = judge(goodHost());
  applyTrials(refused, refused, started, report);
  EXPECT_FALSE(report.full_available) << "whatever the probes found";
  EXPECT_FALSE(report.level("process")->available);
  EXPECT_TRUE(report.level("landlock")->available);
  EXPECT_TRUE(has(report.level("full")->reason, "covered"));
  EXPECT_EQ(item(report, "launch").state, ItemState::fail);
  EXPECT_EQ(item(report, "launch").remedy, "unmask it");

  report = judge(insideDocker());
  applyTrials(bound, bound, started, report);
  EXPECT_FALSE(report.full_available) << "a run without the rung is refused";
  EXPECT_EQ(report.level("full")->allow_weaker, std::vector<std::string>{"proc_bound"});
  EXPECT_TRUE(has(item(report, "launch").remedy, "$ caisson run --allow-weaker proc_bound"));

  report = judge(insideDocker());
  started.layers["hostname"] = "kept: EPERM";
  applyTrials(started, started, started, report);
  EXPECT_TRUE(report.full_available);
  EXPECT_EQ(item(report, "launch").state, ItemState::degraded);
  EXPECT_TRUE(has(item(report, "launch").found, "hostname (kept: EPERM)"));
}

TEST(Doctor, NamesASeccompFilterOutsideAContainer) {
  Probes probes = withoutNamespaces(goodHost(), EPERM);
  probes.obstacles.seccomp_mode = 2;
  EXPECT_TRUE(has(item(judge(probes), "user-namespaces").remedy, "RestrictNamespaces="));
  EXPECT_TRUE(has(item(judge(withoutNamespaces(goodHost(), EINVAL)), "user-namespaces").remedy, "CONFIG_USER_NS"));
  EXPECT_TRUE(has(item(judge(withoutNamespaces(goodHost(), EPERM)), "user-namespaces").remedy, "dmesg"));
}

TEST(Doctor, OneMissingNamespaceRefusesFull) {
  Probes probes = goodHost();
  probes.namespaces.network = {EPERM};
  const DoctorReport report = judge(probes);
  EXPECT_TRUE(has(item(report, "namespaces").found, "network (EPERM)"));
  EXPECT_FALSE(report.full_available);
}

TEST(Doctor, TimeAndCgroupNamespacesMayBeMissing) {
  Probes probes = goodHost();
  probes.namespaces.time = {EINVAL};
  const DoctorReport report = judge(probes);
  EXPECT_EQ(item(report, "namespaces").state, ItemState::degraded);
  EXPECT_TRUE(report.full_available);
}

TEST(Doctor, WithoutLandlockTheBootParameterIsNamed) {
  Probes probes = goodHost();
  probes.landlock_abi = 0;
  probes.landlock = {EOPNOTSUPP};
  probes.obstacles.security_modules = {"capability", "yama"};
  const DoctorReport report = judge(probes);
  EXPECT_TRUE(has(item(report, "landlock").remedy, "lsm=landlock,capability,yama"));
  EXPECT_TRUE(report.full_available) << "full has its own root";
  EXPECT_TRUE(has(report.level("full")->reason, "Landlock"));
  EXPECT_FALSE(report.level("process")->available);
  EXPECT_FALSE(report.level("landlock")->available);
}

TEST(Doctor, LandlockWithoutScopingIsDegraded) {
  Probes probes = goodHost();
  probes.landlock_abi = 2;
  const DoctorReport report = judge(probes);
  EXPECT_EQ(item(report, "landlock").state, ItemState::degraded);
  EXPECT_TRUE(has(item(report, "landlock").remedy, "6.12"));
  EXPECT_TRUE(report.full_available);
}

TEST(Doctor, OldKernelIsRefusedWithItsMissingFeatures) {
  CONFORMS("R-USE-4", "R-LEVEL-21");
  const DoctorReport report = judge(oldKernel());
  const DoctorItem& kernel = item(report, "kernel");
  EXPECT_EQ(kernel.state, ItemState::fail);
  for (const char* lacking : {"overlay in user namespaces", "mount_setattr", "Landlock", "cgroup.kill"}) {
    EXPECT_TRUE(has(kernel.found, lacking)) << lacking;
  }
  EXPECT_FALSE(has(kernel.found, "openat2")) << "5.10 has it";
  for (const LevelVerdict& level : report.levels) EXPECT_FALSE(level.available) << level.name;
}

TEST(Doctor, WithoutDelegationLimitsAreDegraded) {
  CONFORMS("R-USE-4");
  Probes probes = goodHost();
  probes.cgroup.hierarchies[0].make_child = {EACCES};
  probes.cgroup.hierarchies[0].procs_writable = false;
  DoctorReport report = judge(probes);
  EXPECT_EQ(item(report, "cgroup").state, ItemState::degraded);
  EXPECT_TRUE(has(item(report, "cgroup").remedy, "systemd-run --user --scope -p Delegate=yes"));
  EXPECT_TRUE(report.full_available);

  probes.systemd_user_manager = false;
  EXPECT_TRUE(has(item(judge(probes), "cgroup").remedy, "enable-linger"));
  probes.systemd = false;
  EXPECT_TRUE(has(item(judge(probes), "cgroup").remedy, "chown"));

  probes = goodHost();
  probes.cgroup.hierarchies[0].controllers = "memory pids";
  report = judge(probes);
  EXPECT_TRUE(has(item(report, "cgroup").found, "not: cpu"));
  EXPECT_TRUE(has(item(report, "cgroup").remedy, "Delegate=cpu"));

  probes.cgroup.layout = sys::CgroupLayout::hybrid;
  probes.cgroup.hierarchies = {{.v2 = false, .controllers = "memory", .directory = "/x", .make_child = {EACCES}}};
  EXPECT_TRUE(has(item(judge(probes), "cgroup").remedy, "v1 hierarchy"));
}

TEST(Doctor, OverlayMayBeMissing) {
  CONFORMS("R-USE-4");
  Probes probes = goodHost();
  probes.namespaces.mount_overlay = {ENODEV};
  DoctorReport report = judge(probes);
  EXPECT_EQ(item(report, "overlay").state, ItemState::degraded);
  EXPECT_TRUE(has(item(report, "overlay").remedy, "modprobe overlay"));
  EXPECT_TRUE(report.full_available);
  probes = goodHost();
  probes.namespaces.tmpfs_user_xattr = {EOPNOTSUPP};
  EXPECT_TRUE(has(item(judge(probes), "overlay").found, "6.6"));
}

TEST(Doctor, SeccompIsRequiredAndMissingNotificationsDegrade) {
  Probes probes = goodHost();
  probes.seccomp.user_notify = {EBUSY};
  EXPECT_EQ(item(judge(probes), "seccomp").state, ItemState::degraded);
  EXPECT_TRUE(has(item(judge(probes), "seccomp").remedy, "outside"));
  probes.seccomp.filter = {EINVAL};
  EXPECT_FALSE(judge(probes).full_available);
}

TEST(Doctor, StateDirectoryNeedsFreeSpace) {
  CONFORMS("R-USE-4");
  Probes probes = goodHost();
  probes.home.writable = {EROFS};
  EXPECT_FALSE(judge(probes).full_available);
  EXPECT_TRUE(has(item(judge(probes), "state-directory").remedy, "CAISSON_HOME"));
  probes = goodHost();
  probes.home.free_bytes = 1 << 20;
  EXPECT_EQ(item(judge(probes), "state-directory").state, ItemState::fail);
  probes.home.free_bytes = 500 << 20;
  EXPECT_EQ(item(judge(probes), "state-directory").state, ItemState::degraded);
  probes = goodHost();
  probes.home.free_inodes = 500;
  EXPECT_EQ(item(judge(probes), "state-directory").state, ItemState::degraded);
  probes.home.counts_inodes = false;
  EXPECT_EQ(item(judge(probes), "state-directory").state, ItemState::pass);
  probes.home.user_xattr = {EOPNOTSUPP};
  EXPECT_EQ(item(judge(probes), "state-directory").state, ItemState::degraded);
}

TEST(Doctor, EveryProblemHasARemedyAndTheTextFitsAHundredColumns) {
  CONFORMS("R-USE-4");
  Probes nothing;
  Probes long_path = goodHost();
  long_path.home.path = "/" + std::string(300, 'x');
  for (const Probes& probes : {goodHost(), insideDocker(), ubuntu2404(), oldKernel(), nothing, long_path}) {
    const DoctorReport report = judge(probes);
    for (const DoctorItem& one : report.items) {
      EXPECT_EQ(one.remedy.empty(), one.state == ItemState::pass) << one.name << ": " << one.found;
    }
    std::istringstream lines(renderText(report, false));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
  }
}

TEST(Doctor, TextNamesItemsStatesAndLevels) {
  const std::string text = renderText(judge(ubuntu2404()), false);
  EXPECT_TRUE(has(text, "caisson doctor: Linux 6.12.9-amd64 on x86_64, uid 1000\n"));
  EXPECT_TRUE(has(text, "  pass      kernel           6.12.9-amd64\n"));
  EXPECT_TRUE(has(text, "  fail      user-namespaces  refused by AppArmor"));
  EXPECT_TRUE(has(text, "\n              sudo apparmor_parser -r /etc/apparmor.d/caisson\n"));
  EXPECT_TRUE(has(text, "  no        full             needs user-namespaces, namespaces, own-root"));
  EXPECT_TRUE(has(text, "  yes       landlock tier    only when asked for by name"));
}

TEST(Doctor, TextShowsNoControlCharactersOfTheHost) {
  Probes probes = goodHost();
  probes.home.path = "/home/\x1b[31mred\n";
  const std::string text = renderText(judge(probes), false);
  EXPECT_FALSE(has(text, "\x1b"));
  EXPECT_TRUE(has(renderText(judge(goodHost()), true), "\x1b[32m"));
}

TEST(Doctor, JsonHoldsItemsAndLevels) {
  Probes probes = insideDocker();
  probes.home.path = "/home/\xff";
  const auto json = nlohmann::json::parse(renderJson(judge(probes)));
  EXPECT_FALSE(json["full_available"].get<bool>());
  EXPECT_EQ(json["levels"][0]["name"], "full");
  EXPECT_EQ(json["items"][1]["name"], "user-namespaces");
  EXPECT_EQ(json["items"][1]["state"], "fail");
  EXPECT_FALSE(json["items"][1]["remedy"].get<std::string>().empty());
}

TEST(Doctor, DiagnosesThisHost) {
  const DoctorReport report = diagnose("", *Policy::profile("dev"));
  EXPECT_FALSE(report.items.empty());
  EXPECT_EQ(report.levels.size(), 4U);
}

}  // namespace
}  // namespace caisson::verify
