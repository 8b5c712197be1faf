// What a program without a C library needs: an entry, and the functions compilers call by themselves.
#include <cstddef>

extern "C" {

#if defined(__x86_64__)
asm(".globl _start\n"
    "_start:\n"
    "  xor %ebp, %ebp\n"
    "  mov %rsp, %rdi\n"
    "  and $-16, %rsp\n"
    "  call residentMain\n"
    "  ud2\n");
#else
asm(".globl _start\n"
    "_start:\n"
    "  mov x29, xzr\n"
    "  mov x30, xzr\n"
    "  mov x0, sp\n"
    "  bl residentMain\n"
    "  brk #1\n");
#endif

// Volatile accesses: or the compiler turns each loop into a call of itself.
void* memset(void* to, int value, std::size_t count) {
  auto* at = static_cast<volatile unsigned char*>(to);
  for (std::size_t i = 0; i < count; ++i) at[i] = static_cast<unsigned char>(value);
  return to;
}

void* memcpy(void* to, const void* from, std::size_t count) {
  auto* at = static_cast<volatile unsigned char*>(to);
  const auto* source = static_cast<const volatile unsigned char*>(from);
  for (std::size_t i = 0; i < count; ++i) at[i] = source[i];
  return to;
}
}
