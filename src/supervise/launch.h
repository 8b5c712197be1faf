// Starts a sandbox: streams, clone into its namespaces, id maps.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "isolation/block.h"
#include "plan/plan.h"
#include "supervise/streams/handed_streams.h"
#include "sys/cgroup.h"
#include "sys/fd.h"

namespace caisson::supervise {

/// Which standard streams are the sandbox's pty, and its size.
struct TerminalStreams {
  bool stream[3] = {false, false, false};
  std::uint16_t rows = 24, columns = 80;
  [[nodiscard]] bool any() const { return stream[0] || stream[1] || stream[2]; }
};

/// A cloned sandbox whose pid 1 runs. Descriptors are the supervisor's ends.
struct Launched {
  pid_t init = -1;
  sys::Fd pidfd;
  sys::Fd control;
  sys::Fd input;           ///< write end of standard input, or invalid; non-blocking, like the next two
  sys::Fd output;          ///< read end of standard output; invalid if that is the pty or the caller's
  sys::Fd errors;          ///< read end of standard error; invalid if that is the pty or the caller's
  sys::Fd user_namespace;  ///< if the plan maps subordinate ids beside the payload's
  /// If the plan watches a workspace and the payload's pid 1 is a copy of us: for masks. While the second is open, the
  /// sandbox's mounts stay.
  sys::Fd mask_user_namespace, mask_mount_namespace;
  bool pid_namespace = false;         ///< its exit kills every process of the sandbox
  bool in_cgroup = false;             ///< cloned into the cgroup
  std::vector<std::string> unmapped;  ///< of a root caller: shown paths whose files keep their owner
  sys::Fd container;                  ///< with an OCI runtime: control socket of its container's pid 1
  sys::Fd runtime_errors;             ///< ... and what the runtime itself prints; non-blocking
};

/// Descriptors for pid 1 of an OCI runtime's container.
struct ContainerEnds {
  int control = -1, block = -1;
};

/// A program that becomes pid 1 and outlives its first command; see isolation::InitProgram. No payload is started then,
/// and no streams are created.
struct InitProgramOptions {
  int program = -1;  ///< its executable file
  std::vector<std::string> arguments;
  int descriptor = -1;  ///< passed to it
};

struct LaunchOptions {
  TerminalStreams terminal;
  HandedStreams handed;                  ///< descriptors of the caller that the payload gets
  bool feed_input = false;               ///< give the payload a pipe as standard input; else end of file at once
  std::string store;                     ///< a directory for an overlay's changes, when the plan keeps them on disk
  std::vector<std::string> directories;  ///< of the plan's size-limited directories on disk, in its order
  int egress_link = -1;                  ///< where pid 1 hands the sandbox's sockets over, when the plan has an egress
  const InitProgramOptions* init_program = nullptr;
  /// The plan starts an OCI runtime: its container gets these and the streams, the runtime itself neither.
  const ContainerEnds* container = nullptr;
};

/// Starts pid 1 and returns while it builds the sandbox; pid 1 then waits for release(). `cgroup`: clone into it (v2),
/// if it has a descriptor.
Result<Launched> launch(const plan::Plan& plan, const sys::Cgroup& cgroup, const LaunchOptions& options);

/// Lets pid 1 continue. It enters `cgroup` first, if that is valid and launch() did not clone into it: no payload code
/// runs outside. Not an error if the sandbox exited meanwhile; that shows at its pidfd.
Result<void> release(const Launched& sandbox, sys::Cgroup& cgroup);

}  // namespace caisson::supervise
