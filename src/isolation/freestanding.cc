// The base of a program without a C library: an entry point, and functions that compilers call implicitly.
#include <cstddef>

extern "C" {

#if defined(__x86_64__)
asm(".globl _start\n"
    "_start:\n"
    "  xor %ebp, %ebp\n"
    "  mov %rsp, %rdi\n"
    "  and $-16, %rsp\n"
    "  call initMain\n"
    "  ud2\n"
    ".globl cloneOnStack\n"
    "cloneOnStack:\n"
    "  mov %rcx, %r9\n"
    "  mov %rdx, %r10\n"
    "  xor %edx, %edx\n"
    "  xor %r8d, %r8d\n"
    "  mov $56, %eax\n"
    "  syscall\n"
    "  test %rax, %rax\n"
    "  jz 1f\n"
    "  ret\n"
    "1:\n"
    "  xor %ebp, %ebp\n"
    "  and $-16, %rsp\n"
    "  call *%r9\n"
    "  ud2\n"
    ".globl clone3OnStack\n"
    "clone3OnStack:\n"
    "  mov %rdx, %r9\n"
    "  mov $435, %eax\n"
    "  syscall\n"
    "  test %rax, %rax\n"
    "  jz 1f\n"
    "  ret\n"
    "1:\n"
    "  xor %ebp, %ebp\n"
    "  and $-16, %rsp\n"
    "  call *%r9\n"
    "  ud2\n");
#else
asm(".globl _start\n"
    "_start:\n"
    "  mov x29, xzr\n"
    "  mov x30, xzr\n"
    "  mov x0, sp\n"
    "  bl initMain\n"
    "  brk #1\n"
    ".globl cloneOnStack\n"
    "cloneOnStack:\n"
    "  mov x9, x3\n"
    "  mov x4, x2\n"
    "  mov x2, xzr\n"
    "  mov x3, xzr\n"
    "  mov x8, #220\n"
    "  svc #0\n"
    "  cbz x0, 1f\n"
    "  ret\n"
    "1:\n"
    "  mov x29, xzr\n"
    "  mov x30, xzr\n"
    "  blr x9\n"
    "  brk #1\n"
    ".globl clone3OnStack\n"
    "clone3OnStack:\n"
    "  mov x9, x2\n"
    "  mov x8, #435\n"
    "  svc #0\n"
    "  cbz x0, 1f\n"
    "  ret\n"
    "1:\n"
    "  mov x29, xzr\n"
    "  mov x30, xzr\n"
    "  blr x9\n"
    "  brk #1\n");
#endif

// Volatile accesses: otherwise the compiler turns each loop into a call of the same function.
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
