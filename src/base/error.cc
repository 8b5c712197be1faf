#include "base/error.h"

#include <cstring>
#include <iterator>

namespace caisson {

std::string_view name(Stage stage) {
  switch (stage) {
    case Stage::usage: return "usage";
    case Stage::policy: return "policy";
    case Stage::plan: return "plan";
    case Stage::host: return "host";
    case Stage::launch: return "launch";
    case Stage::namespaces: return "namespaces";
    case Stage::mounts: return "mounts";
    case Stage::identity: return "identity";
    case Stage::landlock: return "landlock";
    case Stage::seccomp: return "seccomp";
    case Stage::limits: return "limits";
    case Stage::self_test: return "self-test";
    case Stage::exec: return "exec";
    case Stage::supervise: return "supervise";
    case Stage::state: return "state";
  }
  return "unknown";
}

std::string_view name(ErrorCode code) {
  switch (code) {
    case ErrorCode::other: return "other";
    case ErrorCode::command_denied: return "command_denied";
    case ErrorCode::program_not_started: return "program_not_started";
    case ErrorCode::no_interpreter: return "no_interpreter";
    case ErrorCode::no_working_directory: return "no_working_directory";
    case ErrorCode::file_system_refused: return "file_system_refused";
    case ErrorCode::no_apparmor: return "no_apparmor";
    case ErrorCode::apparmor_refused: return "apparmor_refused";
    case ErrorCode::selinux_refused: return "selinux_refused";
    case ErrorCode::denied_path_missing: return "denied_path_missing";
    case ErrorCode::path_escapes: return "path_escapes";
    case ErrorCode::no_user_namespace: return "no_user_namespace";
    case ErrorCode::masked_proc: return "masked_proc";
    case ErrorCode::hostname_refused: return "hostname_refused";
    case ErrorCode::command_lost: return "command_lost";
    case ErrorCode::digest_mismatch: return "digest_mismatch";
    case ErrorCode::directory_replaced: return "directory_replaced";
  }
  return "other";
}

Error together(std::vector<Error> errors) {
  Error first = std::move(errors.front());
  first.others.assign(std::make_move_iterator(errors.begin() + 1), std::make_move_iterator(errors.end()));
  return first;
}

std::string errnoName(int sys_errno) {
  if (const char* known = strerrorname_np(sys_errno)) return known;
  return "errno " + std::to_string(sys_errno);
}

Error sysError(Stage stage, std::string_view call, std::string_view object, int sys_errno, std::string_view hint) {
  return Error{stage, std::string(call), std::string(object), sys_errno, {}, std::string(hint)};
}

Error plainError(Stage stage, std::string_view call, std::string_view object, std::string_view reason,
                 std::string_view hint) {
  return Error{stage, std::string(call), std::string(object), 0, std::string(reason), std::string(hint)};
}

std::string Error::message() const {
  std::string text = object.empty() && sys_errno != 0 ? call : object;
  const char* words = sys_errno != 0 ? strerrordesc_np(sys_errno) : nullptr;
  const std::string why = !reason.empty() ? reason : words != nullptr ? words : call + " failed";
  text += (text.empty() ? "" : ": ") + why;
  if (sys_errno != 0) text += " (" + (object.empty() ? "" : call + ": ") + errnoName(sys_errno) + ")";
  if (!hint.empty()) text += "\n  try: " + hint;
  for (const Error& other : others) text += "\n" + other.message();
  return text;
}

}  // namespace caisson
