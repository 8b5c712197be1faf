#include "supervise/explain_failure.h"

#include <unistd.h>

#include <cerrno>
#include <string>

#include "plan/image_root.h"
#include "supervise/clone_error.h"

namespace caisson::supervise {
namespace {

constexpr const char* kAskDoctor = "run `caisson doctor`: it names what this host forbids and the remedy";

void explainDirectory(Error& error, const plan::Plan& plan) {
  const bool other_user = error.sys_errno == EACCES && plan.identity.outside_uid != ::geteuid();
  error.hint = other_user ? "the program runs as user " + std::to_string(plan.identity.outside_uid) +
                                ", which may not enter this directory of root's: change its mode or owner, or run "
                                "caisson as the ordinary user who owns it"
                          : "the working directory is not visible inside the sandbox";
}

std::string howToShow(const plan::Plan& plan, std::string_view what) {
  const std::string shown = "show the directory of " + std::string(what) + " with --ro PATH";
  return plan.layered_root ? "install it in the image, or " + shown
                           : shown + "; by default programs come from the host's /usr";
}

void explainExec(Error& error, const plan::Plan& plan) {
  if (error.code == ErrorCode::no_working_directory) return explainDirectory(error, plan);
  if (error.code == ErrorCode::no_interpreter) {
    error.reason = "the interpreter that its first line names, or its loader, is not inside the sandbox";
    error.hint = "check its first line, or " + howToShow(plan, "the interpreter");
    return;
  }
  switch (error.sys_errno) {
    case ENOENT:
      error.reason = "no such program inside the sandbox";
      error.hint = howToShow(plan, "the program");
      break;
    case EACCES:
      error.reason = "not executable: no execute permission, or on a noexec mount";
      error.hint = "chmod +x it, or move it out of a noexec directory; `caisson plan` lists the mounts";
      break;
    case ENOEXEC:
      error.reason = "not a program of this machine, and not a script with a #! line";
      error.hint = "start scripts through their interpreter: caisson run -- sh FILE";
      break;
    case E2BIG:
      error.reason = "the arguments and environment are larger than the kernel takes (a quarter of the stack limit)";
      error.hint = "pass the data by standard input or a file";
      break;
    default: break;
  }
}

void explainMounts(Error& error, const plan::Plan& plan) {
  const int code = error.sys_errno;
  if (error.code == ErrorCode::file_system_refused && error.object == plan::kRootLayers) {
    error.hint = "the kernel refuses an overlay of them: keep the root, and CAISSON_HOME, on a local disk";
  } else if (code == ELOOP && plan.root_writable) {
    error.reason = "the root has a symbolic link at a path where the sandbox mounts something";
    error.hint = "in a session, its own changes made it: create a new session";
  } else if (error.code == ErrorCode::file_system_refused && code == EINVAL && plan.workspace_overlay) {
    error.hint =
        "the workspace has other mounts inside, which an overlay cannot show: use --workspace DIR:ro or DIR:rw";
  } else if (error.code == ErrorCode::denied_path_missing) {
    error.reason = "it does not exist, and a path that is created later cannot be denied in a writable tree";
    error.hint = "use --workspace DIR:overlay, or create it first";
  } else if (error.code == ErrorCode::masked_proc) {
    error.reason = "the kernel mounts no new /proc, since parts of the one here are covered, as container engines do";
    error.hint =
        "--allow-weaker proc_bound (the program sees the names of other processes), or start the container with an "
        "open /proc: docker --security-opt systempaths=unconfined, podman --security-opt unmask=ALL, Kubernetes "
        "procMount: Unmasked";
  } else if (code == ENOSYS) {
    error.hint = "the kernel, or a filter around this process, lacks this call; run `caisson doctor`";
  } else if (error.code == ErrorCode::directory_replaced) {
    error.reason = "something else got its name after it was checked";
    error.hint = "run again; if it stays, another process is replacing it";
  } else if (code == ELOOP) {
    error.reason = "a symbolic link is in the path that was not there when it was checked";
    error.hint = "run again; if it stays, another process is replacing the directory";
  } else if (code == EPERM || code == EACCES) {
    error.hint = kAskDoctor;
  }
}

void explainLabel(Error& error, const plan::Plan& plan) {
  if (error.code == ErrorCode::no_apparmor) {
    error.reason = "the policy names an AppArmor profile, and AppArmor is not active on this host";
    error.hint = "remove isolation.apparmor_profile from the policy, or boot with AppArmor";
  } else if (error.code == ErrorCode::apparmor_refused) {
    error.reason = "the AppArmor profile \"" + plan.apparmor_profile + "\" is not loaded on this host";
    error.hint = "load it with apparmor_parser, or remove isolation.apparmor_profile from the policy";
  } else {
    error.reason = "SELinux does not accept the label \"" + plan.selinux_label + "\"";
    error.hint =
        "name a label of the loaded SELinux policy that the caller may enter, or remove isolation.selinux_label";
  }
}

/// Whether a security module refused its label. Other errors of AppArmor's file are not about the profile.
bool isLabelError(const Error& error) {
  const bool apparmor = error.code == ErrorCode::no_apparmor || error.code == ErrorCode::apparmor_refused;
  return error.code == ErrorCode::selinux_refused ||
         (apparmor && (error.sys_errno == ENOENT || error.sys_errno == EINVAL));
}

}  // namespace

void explainFailure(Error& error, const plan::Plan& plan) {
  if (!error.hint.empty()) return;
  const int code = error.sys_errno;
  if (error.stage == Stage::exec) return explainExec(error, plan);
  // Ubuntu's AppArmor lets a user namespace be created and then denies every capability inside.
  const bool in_new_namespaces = error.stage == Stage::namespaces || error.stage == Stage::mounts;
  if (in_new_namespaces && plan.namespaces.user && (code == EPERM || code == EACCES) &&
      error.code == ErrorCode::other && explainNamespaceError(error))
    return;
  if (error.stage == Stage::mounts) return explainMounts(error, plan);
  if (isLabelError(error)) return explainLabel(error, plan);
  if (error.stage == Stage::self_test) {
    error.reason = "the sandbox is not tight on this host; the program was not started";
    error.hint = "run `caisson doctor`, and please report this";
  } else if (error.code == ErrorCode::hostname_refused) {
    error.hint = "--allow-weaker hostname (the program sees this host's name), or add it to isolation.may_be_missing";
  } else if (error.stage == Stage::launch && code == EAGAIN) {
    error.reason = "the limit on processes leaves no room for the program itself";
    error.hint = "raise it with --pids, or this user's own (ulimit -u)";
  } else if (code == EPERM || code == EACCES || code == ENOSYS) {
    error.hint = kAskDoctor;
  }
}

}  // namespace caisson::supervise
