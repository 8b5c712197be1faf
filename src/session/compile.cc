#include "isolation/compile.h"

#include <sys/mman.h>

#include <cerrno>

#include "session/runner.h"

namespace caisson::session {

Result<CompiledCommand> compileCommand(const plan::Plan& plan, const TerminalSize& terminal, bool listen) {
  CompiledCommand compiled;
  compiled.file = sys::Fd(::memfd_create("caisson-block", MFD_CLOEXEC));
  if (!compiled.file) return fail(sysError(Stage::launch, "memfd_create", "block", errno));
  auto mapping = isolation::BlockMapping::compile(plan, compiled.file.get());
  if (!mapping) return fail(mapping.error());
  isolation::Block& block = **mapping;
  block.listen = block.listen && listen;
  block.landlock_abi = 0;  // pid 1 is in the session's domain, and what it starts is born there
  for (int stream = 0; stream < 3; ++stream) {
    block.terminal[stream] = terminal.stream[stream];
    block.wants_terminal = block.wants_terminal || terminal.stream[stream];
  }
  block.rows = terminal.rows;
  block.columns = terminal.columns;
  compiled.address = reinterpret_cast<std::uint64_t>(&block);
  compiled.bytes = block.mapping_bytes;
  return compiled;
}

}  // namespace caisson::session
