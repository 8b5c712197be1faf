// Names of the values in a result.
#include "caisson/run.h"

namespace caisson {

std::string_view name(OutcomeKind kind) {
  switch (kind) {
    case OutcomeKind::exited: return "exited";
    case OutcomeKind::signaled: return "signaled";
    case OutcomeKind::limit: return "limit";
    case OutcomeKind::denied: return "denied";
    case OutcomeKind::setup_failed: return "setup_failed";
    case OutcomeKind::cancelled: return "cancelled";
  }
  return "unknown";
}

std::string_view name(RunState state) {
  switch (state) {
    case RunState::created: return "Created";
    case RunState::initialized: return "Initialized";
    case RunState::running: return "Running";
    case RunState::monitoring: return "Monitoring";
    case RunState::completed: return "Completed";
    case RunState::timeout: return "Timeout";
    case RunState::error: return "Error";
    case RunState::cleanup: return "Cleanup";
  }
  return "unknown";
}

std::string_view name(FileOperation operation) {
  switch (operation) {
    case FileOperation::look: return "look";
    case FileOperation::read: return "read";
    case FileOperation::write: return "write";
    case FileOperation::create: return "create";
    case FileOperation::execute: return "execute";
  }
  return "unknown";
}

std::string_view name(FileState state) {
  switch (state) {
    case FileState::present: return "present";
    case FileState::absent: return "absent";
    case FileState::hidden: return "hidden";
    case FileState::read_only: return "read-only";
    case FileState::noexec: return "noexec";
  }
  return "unknown";
}

std::string_view name(Limit limit) {
  switch (limit) {
    case Limit::none: return "none";
    case Limit::time: return "time";
    case Limit::cpu: return "cpu";
    case Limit::memory: return "memory";
    case Limit::processes: return "processes";
    case Limit::disk: return "disk";
    case Limit::file_size: return "file_size";
    case Limit::output: return "output";
  }
  return "unknown";
}

}  // namespace caisson
