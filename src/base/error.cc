#include "base/error.h"

#include <cstring>

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
    case ErrorCode::denied_path_missing: return "denied_path_missing";
    case ErrorCode::path_escapes: return "path_escapes";
  }
  return "other";
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
  std::string text = call;
  if (!object.empty()) text += "(\"" + object + "\")";
  if (sys_errno != 0) {
    const char* words = strerrordesc_np(sys_errno);
    text += ": " + errnoName(sys_errno);
    if (words != nullptr) text += std::string(": ") + words;
  }
  if (!reason.empty()) text += ": " + reason;
  text += " (stage " + std::string(name(stage)) + ")";
  if (!hint.empty()) text += "\n  try: " + hint;
  return text;
}

}  // namespace caisson
