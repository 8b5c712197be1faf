// Mappings and memory files that hold blocks.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <utility>

#include "isolation/compile_parts.h"

namespace caisson::isolation {
namespace {

constexpr std::size_t kStack = 64 * 1024;
constexpr std::size_t kSlotBytes = 64ULL << 20;
constexpr std::size_t kPage = 4096;

/// Maps private memory at an address that is probably free in pid 1 of a session as well: far from where programs,
/// heaps and mappings usually lie. Tries several, since sanitizers and small address spaces use some of them.
void* reserveShared(std::size_t bytes) {
#ifdef CAISSON_THREAD_SANITIZER  // its mmap() changes an address outside the range of programs to 0, which root can map
  constexpr std::uintptr_t kPlaces[] = {0x100000000};
#else
  constexpr std::uintptr_t kPlaces[] = {0x3000000000, 0x200000000000, 0x480000000000, 0x600000000000};
#endif
  constexpr int kFixedNoReplace = 0x100000;
  if (bytes > kSlotBytes) return MAP_FAILED;
  for (const std::uintptr_t place : kPlaces) {
    for (std::uintptr_t slot = 0; slot < 8; ++slot) {
      auto* wanted = reinterpret_cast<void*>(place + slot * kSlotBytes);
      constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | kFixedNoReplace;
      void* got = ::mmap(wanted, bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
      if (got == wanted) return got;
      if (got != MAP_FAILED) ::munmap(got, bytes);
    }
  }
  return MAP_FAILED;
}

std::size_t roundedToPages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

BlockMapping::BlockMapping(BlockMapping&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}

BlockMapping::~BlockMapping() {
  if (block_ != nullptr) ::munmap(block_, block_->mapping_bytes);
}

Result<BlockMapping> BlockMapping::compile(const plan::Plan& plan) {
  auto prepared = prepareBlock(plan);
  if (!prepared) return fail(prepared.error());
  const std::size_t bytes = roundedToPages(prepared->bytes + 2 * kStack);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail(sysError(Stage::launch, "mmap", "launch block", errno));
  auto* block = new (memory) Block(prepared->facts);
  BlockMapping mapping(block);
  block->mapping_bytes = bytes;
  char* end = static_cast<char*>(memory) + bytes;
  block->init_stack_top = end;
  block->payload_stack_top = end - kStack;
  fillBlock(block, end - 2 * kStack, plan, *prepared);
  return mapping;
}

BlockSpace::~BlockSpace() {
  for (const Area& area : areas_) {
    if (area.memory != nullptr) ::munmap(area.memory, area.bytes);
  }
}

Result<BlockFile> BlockSpace::compile(const plan::Plan& plan, const std::function<void(Block&)>& adjust) {
  auto prepared = prepareBlock(plan);
  if (!prepared) return fail(prepared.error());
  const std::size_t bytes = roundedToPages(prepared->bytes);
  Area& area = areas_[next_++ % std::size(areas_)];
  if (area.bytes < bytes) {
    if (area.memory != nullptr) ::munmap(std::exchange(area.memory, nullptr), std::exchange(area.bytes, 0));
    void* memory = reserveShared(bytes);
    if (memory == MAP_FAILED) return fail(sysError(Stage::launch, "mmap", "block of a command", errno));
    area = {memory, bytes};
  }
  auto* block = new (area.memory) Block(prepared->facts);
  block->mapping_bytes = bytes;
  const char* begin = static_cast<const char*>(area.memory);
  const char* end = fillBlock(block, static_cast<char*>(area.memory) + bytes, plan, *prepared);
  if (adjust) adjust(*block);
  // Copied by write() and not through a mapping: unmapping would cost more than copying these few pages.
  BlockFile made{sys::Fd(::memfd_create("caisson-block", MFD_CLOEXEC)), reinterpret_cast<std::uint64_t>(block), bytes};
  const auto used = static_cast<std::size_t>(end - begin);
  if (!made.file || ::write(made.file.get(), begin, used) != static_cast<ssize_t>(used) ||
      ::ftruncate(made.file.get(), static_cast<off_t>(bytes)) != 0) {
    return fail(sysError(Stage::launch, "memfd", "block of a command", errno));
  }
  return made;
}

}  // namespace caisson::isolation
