// The parts of compiling a plan, one source file each: steps of the tree (compile_steps.cc), the egress
// (compile_egress.cc), everything else (compile.cc), memory for it (block_memory.cc).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "isolation/arena.h"
#include "isolation/compile.h"

namespace caisson::isolation {

/// What the child has to find at the path of this file.
ExpectedFile expectedFile(const sys::SharedFd& opened);

/// Upper bound of what a step takes of the arena.
std::size_t stepBytes(const plan::Step& step);
/// Fills the steps of `block`, with memory of the arena.
void compileSteps(const plan::Plan& plan, Arena& arena, Block& block);

/// Upper bound of what compileEgress() takes of the arena.
inline constexpr std::size_t kEgressBytes = 16 * 1024;
/// Fills Block::egress; without an egress only sets its link to -1.
void compileEgress(const plan::Plan& plan, Arena& arena, Block& block);
/// Fills Block::host_ports, up to kMaxHostPorts.
void compileHostPorts(const plan::Plan& plan, Arena& arena, Block& block);

/// What is known of a block before there is memory for it.
struct PreparedBlock {
  std::vector<sock_filter> adapted;      ///< the filter's program, if it is not the built-in one
  std::span<const sock_filter> program;  ///< of the filter: built-in or `adapted`
  Block facts{};                         ///< the new block starts as a copy of this: the exec token
  std::vector<std::string> programs;     ///< paths to try for the command, in PATH order
  std::size_t bytes = 0;                 ///< without stacks
};

/// Compiles the filter and computes how much memory the block needs.
Result<PreparedBlock> prepareBlock(const plan::Plan& plan);
/// Fills `block` and the memory behind it, which ends before `end`. Returns the end of what was used.
char* fillBlock(Block* block, char* end, const plan::Plan& plan, const PreparedBlock& prepared);

}  // namespace caisson::isolation
