#include "host/user_namespace_refusal.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "support/conforms.h"

namespace caisson::host {
namespace {

constexpr uid_t kUser = 1000;

Obstacles withAppArmor(const std::string& label) {
  Obstacles obstacles;
  obstacles.max_user_namespaces = 15000;
  obstacles.unprivileged_userns_clone = 1;
  obstacles.apparmor_label = label;
  obstacles.program = "/usr/bin/caisson";
  return obstacles;
}

Obstacles onUbuntu() {
  Obstacles obstacles = withAppArmor("unconfined");
  obstacles.apparmor_restrict_unprivileged_userns = 1;
  return obstacles;
}

bool refusalContains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

UserNamespaceRefusal explained(const Obstacles& obstacles, int sys_errno) {
  auto refusal = explainUserNamespaceRefusal(obstacles, kUser, sys_errno);
  EXPECT_TRUE(refusal.has_value());
  return refusal.value_or(UserNamespaceRefusal{});
}

TEST(UserNamespaceRefusal, OfASysctlNamesTheSettingThatLiftsIt) {
  CONFORMS("R-USE-5");
  Obstacles obstacles = withAppArmor("");
  obstacles.max_user_namespaces = 0;
  UserNamespaceRefusal refusal = explained(obstacles, ENOSPC);
  EXPECT_TRUE(refusalContains(refusal.cause, "user.max_user_namespaces=0"));
  EXPECT_TRUE(refusal.hint.starts_with("sudo sysctl -w user.max_user_namespaces=15000"));
  EXPECT_TRUE(refusalContains(refusal.remedy, "| sudo tee -a /etc/sysctl.d/60-caisson.conf"));

  obstacles = withAppArmor("");
  obstacles.unprivileged_userns_clone = 0;
  refusal = explained(obstacles, EPERM);
  EXPECT_TRUE(refusalContains(refusal.cause, "kernel.unprivileged_userns_clone=0"));
  EXPECT_TRUE(refusal.hint.starts_with("sudo sysctl -w kernel.unprivileged_userns_clone=1"));
  EXPECT_FALSE(explainUserNamespaceRefusal(obstacles, 0, EPERM)) << "it holds for ordinary users only";
}

TEST(UserNamespaceRefusal, OfUbuntusSysctlLoadsTheInstalledProfile) {
  Obstacles obstacles = onUbuntu();
  obstacles.apparmor_profile_file = "/etc/apparmor.d/caisson";
  const UserNamespaceRefusal refusal = explained(obstacles, EACCES);
  EXPECT_TRUE(refusalContains(refusal.cause, "kernel.apparmor_restrict_unprivileged_userns=1"));
  EXPECT_TRUE(refusal.hint.starts_with("sudo apparmor_parser -r /etc/apparmor.d/caisson;"));
  EXPECT_FALSE(refusalContains(refusal.remedy, "install -m")) << "the file is there";
  EXPECT_TRUE(refusalContains(refusal.remedy, "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"));
}

TEST(UserNamespaceRefusal, OfAppArmorEnablesADisabledProfile) {
  Obstacles obstacles = onUbuntu();
  obstacles.apparmor_profile_file = "/etc/apparmor.d/caisson";
  obstacles.apparmor_profile_disabled = true;
  const UserNamespaceRefusal refusal = explained(obstacles, EACCES);
  EXPECT_TRUE(refusalContains(refusal.remedy, "installed but disabled"));
  EXPECT_TRUE(refusalContains(refusal.remedy, "$ sudo rm /etc/apparmor.d/disable/caisson\n$ sudo apparmor_parser -r "));
  EXPECT_TRUE(refusal.hint.starts_with("sudo rm /etc/apparmor.d/disable/caisson && sudo apparmor_parser -r "));
}

TEST(UserNamespaceRefusal, OfAppArmorInstallsThePackagedProfile) {
  Obstacles obstacles = onUbuntu();
  obstacles.apparmor_profile_file = "/usr/share/caisson/apparmor/caisson";
  EXPECT_TRUE(refusalContains(explained(obstacles, EPERM).remedy,
                              "$ sudo install -m 644 /usr/share/caisson/apparmor/caisson /etc/apparmor.d/caisson\n"));
}

TEST(UserNamespaceRefusal, OfAppArmorForAnotherPathWritesAProfileForIt) {
  Obstacles obstacles = onUbuntu();
  obstacles.apparmor_profile_file = "/etc/apparmor.d/caisson";
  obstacles.program = "/home/me/venv/bin/caisson";
  EXPECT_TRUE(
      refusalContains(explained(obstacles, EPERM).remedy, "profile caisson-local /home/me/venv/bin/caisson{,-*}"));
  obstacles.program = "/usr/local/bin/caisson";
  obstacles.apparmor_profile_file = "";
  EXPECT_TRUE(refusalContains(explained(obstacles, EPERM).remedy, "profile caisson /usr/local/bin/caisson{,-*}"))
      << "a second profile for that path would disable the packaged one";
  for (const char* program : {"/home/it's me/caisson", "/home/100%d/caisson", "/home/a*/caisson", ""}) {
    obstacles.program = program;
    const UserNamespaceRefusal refusal = explained(obstacles, EPERM);
    EXPECT_TRUE(refusalContains(refusal.remedy, "caisson-local DIRECTORY/caisson")) << program;
  }
}

TEST(UserNamespaceRefusal, OfAnInheritedProfileNamesTheMissingRule) {
  Obstacles obstacles = withAppArmor("agent//tools (enforce)");
  obstacles.apparmor_profile_file = "/etc/apparmor.d/caisson";
  EXPECT_TRUE(refusalContains(explained(obstacles, EACCES).remedy, "apparmor_parser -r /etc/apparmor.d/caisson"));
  const UserNamespaceRefusal kept = explained(obstacles, EACCES);
  EXPECT_TRUE(refusalContains(kept.cause, "agent//tools (enforce)"));
  EXPECT_TRUE(refusalContains(kept.remedy, "/usr/bin/caisson px,"));
  obstacles.apparmor_label = "agent//&caisson (enforce)";
  EXPECT_TRUE(refusalContains(explained(obstacles, EACCES).remedy, "each must grant it"));
}

TEST(UserNamespaceRefusal, HasAnotherCauseUnderCaissonsOwnProfileAndInContainers) {
  Obstacles obstacles = onUbuntu();
  obstacles.apparmor_label = "caisson (unconfined)";
  EXPECT_FALSE(explainUserNamespaceRefusal(obstacles, kUser, EPERM));
  obstacles = withAppArmor("docker-default (enforce)");
  obstacles.container_signs = {"/.dockerenv"};
  EXPECT_FALSE(explainUserNamespaceRefusal(obstacles, kUser, EPERM));
  obstacles = withAppArmor("");
  obstacles.max_user_namespaces = 0;
  obstacles.container_signs = {"CAISSON: a caisson sandbox"};
  EXPECT_FALSE(explainUserNamespaceRefusal(obstacles, kUser, ENOSPC)) << "that limit is the sandbox's";
}

}  // namespace
}  // namespace caisson::host
