// System calls without libc: they return the kernel's value (negative errno on failure).
//
// Between clone and exec, code must not use libc state: the process may be a copy of a threaded server (with locks held
// forever), and pid 1 later unmaps its whole address space, including errno's thread storage. All functions are
// inlined, so they still work after that.
#pragma once

#include <sys/syscall.h>

#include <type_traits>

namespace caisson::sys {

namespace detail {

template <class T>
[[gnu::always_inline]] inline long word(T value) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<long>(value);
  } else if constexpr (std::is_null_pointer_v<T>) {
    return 0;
  } else {
    return static_cast<long>(value);
  }
}

#if defined(__x86_64__)
[[gnu::always_inline]] inline long invoke(long nr, long a, long b, long c, long d, long e, long f) {
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
[[gnu::always_inline]] inline long invoke(long nr, long a, long b, long c, long d, long e, long f) {
  register long x8 asm("x8") = nr;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory", "cc");
  return x0;
}
#else
#error "caisson runs on x86_64 and aarch64"
#endif

}  // namespace detail

template <class A = long, class B = long, class C = long, class D = long, class E = long, class F = long>
[[gnu::always_inline]] inline long raw(long nr, A a = A{}, B b = B{}, C c = C{}, D d = D{}, E e = E{}, F f = F{}) {
  using detail::word;
  return detail::invoke(nr, word(a), word(b), word(c), word(d), word(e), word(f));
}

}  // namespace caisson::sys
