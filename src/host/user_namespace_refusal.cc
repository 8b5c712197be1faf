#include "host/user_namespace_refusal.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <string_view>

namespace caisson::host {
namespace {

constexpr std::string_view kInstalledProfile = "/etc/apparmor.d/caisson";

/// The paths that packaging/apparmor/caisson names.
bool profileNames(std::string_view program) {
  constexpr std::array<std::string_view, 4> kStarts{"/usr/bin/caisson", "/usr/local/bin/caisson",
                                                    "/usr/libexec/caisson/", "/usr/local/libexec/caisson/"};
  return std::ranges::any_of(kStarts, [&](std::string_view start) { return program.starts_with(start); });
}

/// Whether the path means itself in a shell's single quotes, in printf's format and in an AppArmor profile.
bool isPlain(std::string_view path) {
  return path.starts_with('/') && std::ranges::all_of(path, [](unsigned char letter) {
           return std::isalnum(letter) != 0 ||
                  std::string_view("/._+-").find(static_cast<char>(letter)) != std::string_view::npos;
         });
}

/// A profile for a program that the packaged profile does not name.
std::string localProfile(std::string_view program) {
  const std::size_t slash = program.find_last_of('/');
  const bool plain = isPlain(program);
  const std::string directory = plain ? std::string(program.substr(0, slash)) : "DIRECTORY";
  std::string text =
      "Load an AppArmor profile (AppArmor 4) that opens user namespaces for this caisson alone. Whoever can change the "
      "program gets the right, too: prefer a directory that only root can write.\n";
  if (!plain) text += "Write the directory of caisson instead of DIRECTORY.\n";
  // Of two profiles for one path AppArmor uses neither; one of the same name is replaced by a package's.
  return text.append("$ printf 'abi <abi/4.0>,\\nprofile ")
      .append(profileNames(program) ? "caisson " : "caisson-local ")
      .append(directory)
      .append("/caisson{,-*} flags=(unconfined) {\\n  userns,\\n}\\n' \\\n")
      .append("$     | sudo tee /etc/apparmor.d/caisson-local\n")
      .append("$ sudo apparmor_parser -r /etc/apparmor.d/caisson-local");
}

struct ProfileAdvice {
  std::string remedy, hint;
};

ProfileAdvice loadProfile(const Obstacles& obstacles) {
  const std::string load = "sudo apparmor_parser -r " + std::string(kInstalledProfile);
  if (!profileNames(obstacles.program) || obstacles.apparmor_profile_file.empty()) {
    return {localProfile(obstacles.program), "run `caisson doctor`: it prints an AppArmor profile for this caisson"};
  }
  const std::string hint = "; `caisson doctor` explains more";
  if (obstacles.apparmor_profile_file == kInstalledProfile) {
    const bool disabled = obstacles.apparmor_profile_disabled;  // apparmor_parser would skip it
    const std::string enable = disabled ? "sudo rm /etc/apparmor.d/disable/caisson" : "";
    return {
        std::string("caisson's AppArmor profile, which opens user namespaces for caisson alone, is installed but ") +
            (disabled ? "disabled. Enable and load it" : "not in force. Load it") + " (it needs AppArmor 4):\n$ " +
            (disabled ? enable + "\n$ " : "") + load,
        (disabled ? enable + " && " : "") + load + hint};
  }
  const std::string install =
      "sudo install -m 644 " + obstacles.apparmor_profile_file + " " + std::string(kInstalledProfile);
  return {"Load caisson's AppArmor profile (AppArmor 4), which opens user namespaces for caisson alone:\n$ " + install +
              "\n$ " + load,
          install + " && " + load + hint};
}

/// For a program that another profile confines: because caisson's is not loaded, or because the program that started
/// caisson does not let it change its profile. Which of them cannot be read from inside a profile.
ProfileAdvice leaveProfile(const Obstacles& obstacles, const std::string& profile) {
  if (profile.find("//&") != std::string::npos) {
    return {
        "This program is under several profiles at once, and each must grant it: add \"userns,\" and \"capability,\" "
        "to "
        "those that lack them, and load them again.",
        "each of these profiles must grant userns; `caisson doctor` explains more"};
  }
  const std::string rule = (isPlain(obstacles.program) ? obstacles.program : "DIRECTORY/caisson") + " px,";
  ProfileAdvice advice = loadProfile(obstacles);
  advice.remedy += "\nIf that profile is loaded already, the program that started caisson keeps it under \"" + profile +
                   "\". Add this line to \"" + profile + "\" and load it again:\n    " + rule;
  const std::string more = "; if it is loaded, add \"" + rule + "\" to \"" + profile + "\"";
  advice.hint.insert(std::min(advice.hint.find(';'), advice.hint.size()), more);
  return advice;
}

std::optional<UserNamespaceRefusal> explainAppArmor(const Obstacles& obstacles, uid_t uid) {
  const std::string& label = obstacles.apparmor_label;
  const bool restricted = obstacles.apparmor_restrict_unprivileged_userns.value_or(0) != 0;
  if (label == "unconfined" && restricted && uid != 0) {
    // Ubuntu 23.10 and later: the namespace is created or not, and never has capabilities.
    const ProfileAdvice advice = loadProfile(obstacles);
    return UserNamespaceRefusal{
        "refused by AppArmor (kernel.apparmor_restrict_unprivileged_userns=1, this program is \"" + label + "\")",
        advice.remedy +
            "\nOr, weaker, for every program on this machine, which exposes kernel code that Ubuntu hides from "
            "unprivileged programs:\n$ sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        advice.hint};
  }
  // A profile that only names the program, "caisson (unconfined)", forbids nothing.
  if (label.empty() || label == "unconfined" || label.ends_with("(unconfined)")) return std::nullopt;
  const std::string profile = label.substr(0, label.rfind(" ("));
  const ProfileAdvice advice = leaveProfile(obstacles, profile);
  return UserNamespaceRefusal{"refused by AppArmor: the profile \"" + label +
                                  "\" of this program does not grant userns, or no capability in it",
                              advice.remedy, advice.hint};
}

UserNamespaceRefusal explainSysctl(const std::string& cause, const std::string& setting) {
  const std::string set = "sudo sysctl -w " + setting;
  return {cause, "$ " + set + "\n$ echo " + setting + " | sudo tee -a /etc/sysctl.d/60-caisson.conf",
          set + "; `caisson doctor` explains more"};
}

}  // namespace

std::optional<UserNamespaceRefusal> explainUserNamespaceRefusal(const Obstacles& obstacles, uid_t uid, int sys_errno) {
  // The limit that is read inside a caisson sandbox is the sandbox's own.
  if (engineOf(obstacles.container_signs) == Engine::caisson) return std::nullopt;
  if (obstacles.max_user_namespaces == 0) {
    return explainSysctl("switched off by user.max_user_namespaces=0", "user.max_user_namespaces=15000");
  }
  if (obstacles.unprivileged_userns_clone == 0 && uid != 0) {
    return explainSysctl("switched off for ordinary users by kernel.unprivileged_userns_clone=0",
                         "kernel.unprivileged_userns_clone=1");
  }
  const bool refused = sys_errno == EPERM || sys_errno == EACCES;
  if (!refused || !obstacles.container_signs.empty()) return std::nullopt;
  return explainAppArmor(obstacles, uid);
}

}  // namespace caisson::host
